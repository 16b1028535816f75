// Checks and shapes of the convolutions, and what they leave on the tape. A 1-D convolution is one over W, a
// matrix product one with a single tap; a transposed one has `stride` times the outputs.
#include "core/autograd/conv.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "core/autograd/conv_operands.h"
#include "core/autograd/conv_products.h"
#include "core/autograd/reduce.h"
#include "core/error.h"
#include "core/gemm_bf16.h"

namespace tessera::ops {
namespace {

std::string got(const Tensor& x) {
  if (!x.defined()) return "none";
  return x.dtype() == DType::f32 ? x.shape().str() : x.shape().str() + " of " + name_of(x.dtype());
}

void expect_rank(const char* op, const char* what, const Tensor& x, int rank) {
  if (!x.defined() || x.dtype() != DType::f32 || x.shape().rank() != rank) fail(op, what, got(x));
}

void expect_bias(const char* op, const Tensor& bias, std::int64_t outputs) {
  if (!bias.defined()) return;
  const Shape expected{outputs};
  if (bias.dtype() != DType::f32 || bias.shape() != expected) fail(op, "a bias " + expected.str(), got(bias));
}

void expect_at_least(const char* op, const char* what, int value, int least) {
  if (value < least) fail(op, std::string(what) + " >= " + std::to_string(least), std::to_string(value));
}

void check_axis(const char* op, const char* axis, int stride, int dilation, int before, int after) {
  const std::string of = std::string(" of ") + axis;
  expect_at_least(op, ("a stride" + of).c_str(), stride, 1);
  expect_at_least(op, ("a dilation" + of).c_str(), dilation, 1);
  expect_at_least(op, ("padding" + of).c_str(), std::min(before, after), 0);
  if (stride > 1 && dilation > 1) {
    fail(op, "a stride or a dilation" + of, std::to_string(stride) + " and " + std::to_string(dilation));
  }
}

// Extents and products of extents are counted in int by the products.
int extent(const char* op, std::int64_t value) {
  constexpr int kMost = std::numeric_limits<int>::max() / 4;
  if (value < 1 || value > kMost)
    fail(op, "extents from 1 to " + std::to_string(kMost), std::to_string(value));
  return static_cast<int>(value);
}

int out_extent(const char* op, const char* axis, int x, int kernel, int stride, int dilation, int before,
               int after) {
  const std::int64_t padded = std::int64_t{x} + before + after;
  const std::int64_t seen = (std::int64_t{kernel} - 1) * dilation + 1;
  if (padded < seen) {
    fail(op, std::string("at least ") + std::to_string(seen) + " along " + axis + ", padding included",
         std::to_string(padded));
  }
  extent(op, padded);
  return static_cast<int>((padded - seen) / stride + 1);
}

ConvShape conv_shape(const Tape& tape, const char* op, const Shape& x, const Shape& w,
                     const Conv2dOptions& o) {
  if (w.rank() != 4) fail(op, "w [KH, KW, C, O]", w.str());
  if (x.rank() != 4 || x[3] != w[2]) fail(op, "x [B, H, W, " + std::to_string(w[2]) + "]", x.str());
  check_axis(op, "H", o.stride_h, o.dilation_h, o.pad_top, o.pad_bottom);
  check_axis(op, "W", o.stride_w, o.dilation_w, o.pad_left, o.pad_right);
  check_post(op, o.post, o.slope);
  ConvShape s;
  s.batch = extent(op, x[0]);
  s.height = extent(op, x[1]);
  s.width = extent(op, x[2]);
  s.channels = extent(op, x[3]);
  s.kernel_h = extent(op, w[0]);
  s.kernel_w = extent(op, w[1]);
  s.outputs = extent(op, w[3]);
  // Step by step, so that none overflows.
  extent(op, w[0] * w[1]);
  extent(op, w[0] * w[1] * w[2]);
  extent(op, w.size());
  extent(op, std::int64_t{extent(op, o.stride_w)} * s.channels);
  extent(op, o.stride_h);
  extent(op, x[0] * x[1]);
  extent(op, x[0] * x[1] * x[2]);
  s.out_height = out_extent(op, "H", s.height, s.kernel_h, o.stride_h, o.dilation_h, o.pad_top, o.pad_bottom);
  s.out_width = out_extent(op, "W", s.width, s.kernel_w, o.stride_w, o.dilation_w, o.pad_left, o.pad_right);
  extent(op, x[0] * s.out_height);
  extent(op, x[0] * s.out_height * s.out_width);
  s.options = o;
  // Kept with the shape: the gradients multiply what the output did, whatever the tape is set to by then.
  s.bf16 = tape.precision() == Precision::bf16 && has_bf16_products();
  return s;
}

Shape output_shape(const ConvShape& s) {
  return {s.batch, s.out_height, s.out_width, s.outputs};
}

// Axes that the kernel does not see are one: a product over all positions at once.
ConvShape joined(ConvShape s) {
  const Conv2dOptions& o = s.options;
  if (s.kernel_h == 1 && o.stride_h == 1 && o.pad_top == 0 && o.pad_bottom == 0) {
    s.batch *= s.height;
    s.height = s.out_height = 1;
    s.options.dilation_h = 1;
  }
  if (s.height == 1 && s.kernel_h == 1 && s.kernel_w == 1 && o.stride_w == 1 && o.pad_left == 0 &&
      o.pad_right == 0 && s.out_height == 1) {
    s.width = s.out_width = s.batch * s.width;
    s.batch = 1;
    s.options.dilation_w = 1;
  }
  return s;
}

Conv2dOptions as_2d(const Conv1dOptions& options) {
  Conv2dOptions o;
  o.stride_w = options.stride;
  o.dilation_w = options.dilation;
  o.pad_left = options.pad_left;
  o.pad_right = options.pad_right;
  o.post = options.post;
  o.slope = options.slope;
  return o;
}

// conv2d() for checked arguments, whatever their ranks: y is [..., O] of shape `y_shape`.
Tensor convolve(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias, const ConvShape& s,
                const Shape& y_shape) {
  Tensor y = tape.make(y_shape);
  conv_output(tape, joined(s), x.f32(), w.f32(), bias.defined() ? bias.f32() : nullptr, y.f32());
  apply_post(tape, s.options, y);
  Tensor kept = s.options.post == Activation::none ? Tensor() : y.detached();
  return tape.record(y, {x, w, bias},
                     [&tape, s, x = x.detached(), w = w.detached(), y = std::move(kept)](
                         const Tensor& gradient, InputGradients& inputs) {
                       const Tensor g = post_gradient(tape, s.options, y, gradient);
                       if (inputs.wants(0)) {
                         Tensor dx = tape.make(x.shape());
                         conv_input_gradient(tape, joined(s), g.f32(), w.f32(), dx.f32());
                         inputs.add(0, dx);
                       }
                       if (inputs.wants(1)) {
                         Tensor dw = tape.make(w.shape());
                         conv_weight_gradient(tape, joined(s), g.f32(), x.f32(), dw.f32());
                         inputs.add(1, dw);
                       }
                       if (inputs.wants(2)) inputs.add(2, sum_rows(tape, g.detached()));
                     });
}

void expect_gradient(const char* op, const Tensor& gradient, const ConvShape& s) {
  if (!gradient.defined() || gradient.dtype() != DType::f32 || gradient.shape() != output_shape(s)) {
    fail(op, "a gradient " + output_shape(s).str(), got(gradient));
  }
}

// w [taps * stride, C, O] of a transposed convolution as that of the convolution with stride * O outputs that
// it is, [taps, C, stride, O] with the taps in reverse order; or back.
void reorder_taps(Tape& tape, const Shape& w, int stride, const float* from, float* to, bool back) {
  const std::int64_t channels = w[1], outputs = w[2], taps = w[0] / stride;
  tape.pool().parallel_for(static_cast<int>(taps * channels), [&](int i) {
    const std::int64_t tap = i / channels, c = i % channels;
    for (std::int64_t j = 0; j < stride; ++j) {
      const std::int64_t a = (((taps - 1 - tap) * stride + j) * channels + c) * outputs;
      const std::int64_t b = (i * stride + j) * outputs;
      std::copy_n(from + (back ? b : a), outputs, to + (back ? a : b));
    }
  });
}

}  // namespace

Tensor matmul(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias) {
  expect_rank("matmul", "w [K, N]", w, 2);
  const std::int64_t k = w.dim(0), n = w.dim(1);
  const int rank = x.shape().rank();
  if (!x.defined() || x.dtype() != DType::f32 || rank < 1 || x.dim(rank - 1) != k)
    fail("matmul", "x [..., " + std::to_string(k) + "]", got(x));
  expect_bias("matmul", bias, n);
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < rank; ++i) rows *= extents[to_size(i)] = x.dim(i);
  extents[to_size(rank - 1)] = n;
  const ConvShape s = conv_shape(tape, "matmul", {1, 1, rows, k}, {1, 1, k, n}, {});
  return convolve(tape, x, w, bias, s, Shape(std::span(extents).first(to_size(rank))));
}

Tensor conv2d(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
              const Conv2dOptions& options) {
  expect_rank("conv2d", "w [KH, KW, C, O]", w, 4);
  expect_rank("conv2d", "x [B, H, W, C]", x, 4);
  const ConvShape s = conv_shape(tape, "conv2d", x.shape(), w.shape(), options);
  expect_bias("conv2d", bias, s.outputs);
  return convolve(tape, x, w, bias, s, output_shape(s));
}

Tensor conv1d(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
              const Conv1dOptions& options) {
  expect_rank("conv1d", "w [K, C, O]", w, 3);
  if (!x.defined() || x.dtype() != DType::f32 || x.shape().rank() != 3 || x.dim(2) != w.dim(1))
    fail("conv1d", "x [B, T, " + std::to_string(w.dim(1)) + "]", got(x));
  const ConvShape s = conv_shape(tape, "conv1d", {x.dim(0), 1, x.dim(1), x.dim(2)},
                                 {1, w.dim(0), w.dim(1), w.dim(2)}, as_2d(options));
  expect_bias("conv1d", bias, s.outputs);
  return convolve(tape, x, w, bias, s, {s.batch, s.out_width, s.outputs});
}

Tensor conv_transpose1d(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias, int stride) {
  const char* const op = "conv_transpose1d";
  expect_rank(op, "w [K, C, O]", w, 3);
  expect_at_least(op, "a stride", stride, 1);
  if (w.dim(0) < 1 || w.dim(0) % stride != 0)
    fail(op, "a kernel that is a multiple of the stride " + std::to_string(stride), got(w));
  if (!x.defined() || x.dtype() != DType::f32 || x.shape().rank() != 3 || x.dim(2) != w.dim(1))
    fail(op, "x [B, T, " + std::to_string(w.dim(1)) + "]", got(x));
  expect_bias(op, bias, w.dim(2));
  // `stride` neighbouring outputs are the outputs of one window of x.
  const std::int64_t taps = w.dim(0) / stride, channels = w.dim(1), outputs = w.dim(2);
  Conv2dOptions options;
  options.pad_left = static_cast<int>(taps) - 1;
  const ConvShape s =
      conv_shape(tape, op, {x.dim(0), 1, x.dim(1), channels}, {1, taps, channels, stride * outputs}, options);
  Tensor kernel = tape.make(w.shape());
  reorder_taps(tape, w.shape(), stride, w.f32(), kernel.f32(), false);
  Tensor repeated;
  if (bias.defined()) {
    repeated = tape.make({stride * outputs});
    for (int j = 0; j < stride; ++j) std::copy_n(bias.f32(), outputs, repeated.f32() + j * outputs);
  }
  Tensor y = tape.make({x.dim(0), x.dim(1) * stride, outputs});
  conv_output(tape, joined(s), x.f32(), kernel.f32(), bias.defined() ? repeated.f32() : nullptr, y.f32());
  return tape.record(
      y, {x, w, bias},
      [&tape, s, stride, x = x.detached(), w = w.detached()](const Tensor& g, InputGradients& inputs) {
        Tensor kernel = tape.make(w.shape());
        if (inputs.wants(0)) {
          reorder_taps(tape, w.shape(), stride, w.f32(), kernel.f32(), false);
          Tensor dx = tape.make(x.shape());
          conv_input_gradient(tape, joined(s), g.f32(), kernel.f32(), dx.f32());
          inputs.add(0, dx);
        }
        if (inputs.wants(1)) {
          conv_weight_gradient(tape, joined(s), g.f32(), x.f32(), kernel.f32());
          Tensor dw = tape.make(w.shape());
          reorder_taps(tape, w.shape(), stride, kernel.f32(), dw.f32(), true);
          inputs.add(1, dw);
        }
        if (inputs.wants(2)) inputs.add(2, sum_rows(tape, g.detached()));
      });
}

Tensor conv2d_input_gradient(Tape& tape, const Tensor& gradient, const Tensor& w, const Shape& x,
                             const Conv2dOptions& options) {
  const char* const op = "conv2d_input_gradient";
  expect_rank(op, "w [KH, KW, C, O]", w, 4);
  const ConvShape s = conv_shape(tape, op, x, w.shape(), options);
  expect_gradient(op, gradient, s);
  Tensor dx = tape.make(x);
  conv_input_gradient(tape, joined(s), gradient.f32(), w.f32(), dx.f32());
  return dx;
}

Tensor conv2d_weight_gradient(Tape& tape, const Tensor& gradient, const Tensor& x, const Shape& w,
                              const Conv2dOptions& options) {
  const char* const op = "conv2d_weight_gradient";
  expect_rank(op, "x [B, H, W, C]", x, 4);
  const ConvShape s = conv_shape(tape, op, x.shape(), w, options);
  expect_gradient(op, gradient, s);
  Tensor dw = tape.make(w);
  conv_weight_gradient(tape, joined(s), gradient.f32(), x.f32(), dw.f32());
  return dw;
}

bool bf16_products() {
  return has_bf16_products();
}

}  // namespace tessera::ops
