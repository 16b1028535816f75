// Operations on each element: checks, what the gradient keeps, and the sharing of loops over threads. The
// loops are in elementwise_cpu.cpp.
#include "core/autograd/elementwise.h"

#include <utility>

#include "core/autograd/elementwise_kernels.h"
#include "core/autograd/op.h"
#include "core/autograd/sums.h"

namespace tessera::ops {
namespace {

/// body(begin, n) over the elements of a tensor, in blocks.
template <class Body>
void over_elements(Tape& tape, const Tensor& x, const Body& body) {
  for_blocks(tape.pool(), x.size(), kBlock,
             [&](std::int64_t begin, std::int64_t n) { body(begin, static_cast<std::size_t>(n)); });
}

Tensor combine(Tape& tape, Binary op, const Tensor& a, const Tensor& b) {
  Tensor y = tape.make(a.shape());
  float* out = y.f32();
  over_elements(tape, a,
                [&](std::int64_t i, std::size_t n) { binary(op, a.f32() + i, b.f32() + i, out + i, n); });
  return y;
}

Tensor map(Tape& tape, Unary op, const Tensor& x, float p = 0.0f, float q = 0.0f) {
  Tensor y = tape.make(x.shape());
  float* out = y.f32();
  over_elements(tape, x, [&](std::int64_t i, std::size_t n) { unary(op, x.f32() + i, out + i, n, p, q); });
  return y;
}

/// g f'(r)
Tensor along_slope(Tape& tape, Slope slope, const Tensor& r, const Tensor& g, float p = 0.0f) {
  Tensor dx = tape.make(g.shape());
  float* out = dx.f32();
  over_elements(tape, g, [&](std::int64_t i, std::size_t n) {
    times_slope(slope, r.f32() + i, g.f32() + i, out + i, n, p);
  });
  return dx;
}

/// y = f(x) on record, where the derivative is known from r, which is x or y.
Tensor record_slope(Tape& tape, const Tensor& y, const Tensor& x, Slope slope, const Tensor& r,
                    float p = 0.0f) {
  if (!x.recorded()) return y;
  return tape.record(y, {x}, [&tape, slope, r = r.detached(), p](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, along_slope(tape, slope, r, g, p));
  });
}

/// x [M, ...] times factor [M].
Tensor scale_items(Tape& tape, const Tensor& x, const Tensor& factor) {
  Tensor y = tape.make(x.shape());
  float* out = y.f32();
  const std::int64_t items = factor.size(), width = items > 0 ? x.size() / items : 0;
  const std::int64_t pieces = std::max<std::int64_t>((width + kBlock - 1) / kBlock, 1);
  for_rows(tape.pool(), items * pieces, std::min(width, kBlock), [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t piece = first; piece < first + n; ++piece) {
      const std::int64_t item = piece / pieces, begin = piece % pieces * kBlock;
      const std::int64_t at = item * width + begin;
      unary(Unary::affine, x.f32() + at, out + at, static_cast<std::size_t>(std::min(kBlock, width - begin)),
            factor.f32()[item], -0.0f);
    }
  });
  return y;
}

/// x [..., C] op row [C].
Tensor combine_rows(Tape& tape, Binary op, const Tensor& x, const Tensor& row) {
  Tensor y = tape.make(x.shape());
  float* out = y.f32();
  const std::int64_t channels = row.size();
  for_rows(tape.pool(), rows_of(x, channels), channels, [&](std::int64_t first, std::int64_t n) {
    binary_rows(op, x.f32() + first * channels, row.f32(), out + first * channels,
                static_cast<std::size_t>(n), static_cast<std::size_t>(channels));
  });
  return y;
}

/// `x` for a gradient that is needed only if it flows to `other`.
Tensor kept_for(const Tensor& other, const Tensor& x) {
  return other.recorded() ? x.detached() : Tensor();
}

}  // namespace

Tensor add(Tape& tape, const Tensor& a, const Tensor& b) {
  expect_f32("add", "a", a);
  expect_shape("add", "b", b, a.shape());
  return tape.record(combine(tape, Binary::add, a, b), {a, b}, [](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, g);
    inputs.add(1, g);
  });
}

Tensor sub(Tape& tape, const Tensor& a, const Tensor& b) {
  expect_f32("sub", "a", a);
  expect_shape("sub", "b", b, a.shape());
  return tape.record(combine(tape, Binary::sub, a, b), {a, b},
                     [&tape](const Tensor& g, InputGradients& inputs) {
                       inputs.add(0, g);
                       if (inputs.wants(1)) inputs.add(1, affine(tape, g, -1.0f));
                     });
}

Tensor mul(Tape& tape, const Tensor& a, const Tensor& b) {
  expect_f32("mul", "a", a);
  expect_shape("mul", "b", b, a.shape());
  return tape.record(
      combine(tape, Binary::mul, a, b), {a, b},
      [&tape, a = kept_for(b, a), b = kept_for(a, b)](const Tensor& g, InputGradients& inputs) {
        if (inputs.wants(0)) inputs.add(0, combine(tape, Binary::mul, g, b));
        if (inputs.wants(1)) inputs.add(1, combine(tape, Binary::mul, g, a));
      });
}

Tensor div(Tape& tape, const Tensor& a, const Tensor& b) {
  expect_f32("div", "a", a);
  expect_shape("div", "b", b, a.shape());
  const Tensor y = combine(tape, Binary::div, a, b);
  return tape.record(y, {a, b},
                     [&tape, y = kept_for(b, y), b = b.detached()](const Tensor& g, InputGradients& inputs) {
                       if (inputs.wants(0)) inputs.add(0, combine(tape, Binary::div, g, b));
                       if (!inputs.wants(1)) return;
                       Tensor db = tape.make(b.shape());
                       float* out = db.f32();
                       over_elements(tape, b, [&](std::int64_t i, std::size_t n) {
                         divisor_gradient(g.f32() + i, y.f32() + i, b.f32() + i, out + i, n);
                       });
                       inputs.add(1, db);
                     });
}

Tensor affine(Tape& tape, const Tensor& a, float factor, float offset) {
  expect_f32("affine", "a", a);
  return tape.record(map(tape, Unary::affine, a, factor, offset), {a},
                     [&tape, factor](const Tensor& g, InputGradients& inputs) {
                       // -0: adding it changes nothing, not even a zero's sign
                       inputs.add(0, map(tape, Unary::affine, g, factor, -0.0f));
                     });
}

Tensor add_rows(Tape& tape, const Tensor& x, const Tensor& bias) {
  const std::int64_t channels = channels_of("add_rows", x);
  expect_shape("add_rows", "bias", bias, {channels});
  return tape.record(combine_rows(tape, Binary::add, x, bias), {x, bias},
                     [&tape, channels](const Tensor& g, InputGradients& inputs) {
                       inputs.add(0, g);
                       if (inputs.wants(1)) inputs.add(1, column_sums(tape, g, Tensor(), channels));
                     });
}

Tensor mul_rows(Tape& tape, const Tensor& x, const Tensor& scale) {
  const std::int64_t channels = channels_of("mul_rows", x);
  expect_shape("mul_rows", "scale", scale, {channels});
  return tape.record(combine_rows(tape, Binary::mul, x, scale), {x, scale},
                     [&tape, channels, x = kept_for(scale, x), scale = kept_for(x, scale)](
                         const Tensor& g, InputGradients& inputs) {
                       if (inputs.wants(0)) inputs.add(0, combine_rows(tape, Binary::mul, g, scale));
                       if (inputs.wants(1)) inputs.add(1, column_sums(tape, g, x, channels));
                     });
}

Tensor mul_items(Tape& tape, const Tensor& x, const Tensor& factor) {
  expect_f32("mul_items", "x", x);
  if (x.shape().rank() < 1) fail("mul_items", "x [M, ...]", x.shape().str());
  expect_shape("mul_items", "factor", factor, {x.dim(0)});
  return tape.record(scale_items(tape, x, factor), {x, factor},
                     [&tape, x = kept_for(factor, x), factor = kept_for(x, factor)](const Tensor& g,
                                                                                    InputGradients& inputs) {
                       if (inputs.wants(0)) inputs.add(0, scale_items(tape, g, factor));
                       if (inputs.wants(1)) inputs.add(1, row_sums(tape, g, x, g.dim(0)));
                     });
}

Tensor activate(Tape& tape, Activation f, const Tensor& x) {
  expect_f32("activate", "x", x);
  if (f == Activation::none) return x;
  if (f == Activation::leaky_relu) return leaky_relu(tape, x, 0.01f);
  Tensor y = tape.make(x.shape());
  float* out = y.f32();
  over_elements(tape, x,
                [&](std::int64_t i, std::size_t n) { tessera::activate(f, x.f32() + i, out + i, n); });
  switch (f) {
    case Activation::none:
    case Activation::leaky_relu:
      break;
    case Activation::elu:
      return record_slope(tape, y, x, Slope::elu_y, y);
    case Activation::relu:
      return record_slope(tape, y, x, Slope::step_y, y);
    case Activation::tanh:
      return record_slope(tape, y, x, Slope::tanh_y, y);
    case Activation::sigmoid:
      return record_slope(tape, y, x, Slope::sigmoid_y, y);
    case Activation::exp:
      return record_slope(tape, y, x, Slope::exp_y, y);
    case Activation::signed_sqrt:
      return record_slope(tape, y, x, Slope::signed_sqrt_y, y);
    case Activation::gelu:
      return record_slope(tape, y, x, Slope::gelu, x);
    case Activation::gelu_tanh:
      return record_slope(tape, y, x, Slope::gelu_tanh, x);
    case Activation::silu:
      return record_slope(tape, y, x, Slope::silu, x);
    case Activation::sin:
      return record_slope(tape, y, x, Slope::sin, x);
    case Activation::cos:
      return record_slope(tape, y, x, Slope::cos, x);
    case Activation::erf:
      return record_slope(tape, y, x, Slope::erf, x);
    case Activation::log:
      return record_slope(tape, y, x, Slope::log, x);
    case Activation::signed_square:
      return record_slope(tape, y, x, Slope::signed_square, x);
  }
  fail("activate", "an Activation", std::to_string(static_cast<int>(f)));
}

Tensor leaky_relu(Tape& tape, const Tensor& x, float slope) {
  expect_f32("leaky_relu", "x", x);
  const Tensor y = map(tape, Unary::leaky_relu, x, slope);
  return record_slope(tape, y, x, Slope::step_y, slope >= 0.0f ? y : x, slope);  // y has the sign of x
}

Tensor abs(Tape& tape, const Tensor& x) {
  expect_f32("abs", "x", x);
  return record_slope(tape, map(tape, Unary::abs, x), x, Slope::abs, x);
}

Tensor square(Tape& tape, const Tensor& x) {
  expect_f32("square", "x", x);
  return record_slope(tape, map(tape, Unary::square, x), x, Slope::square, x);
}

Tensor sqrt(Tape& tape, const Tensor& x, float eps) {
  expect_f32("sqrt", "x", x);
  const Tensor y = map(tape, Unary::sqrt, x, eps);
  return record_slope(tape, y, x, Slope::sqrt_y, y);
}

Tensor at_least(Tape& tape, const Tensor& x, float floor) {
  expect_f32("at_least", "x", x);
  return record_slope(tape, map(tape, Unary::at_least, x, floor), x, Slope::at_least, x, floor);
}

void add_to(Tape& tape, const Tensor& x, Tensor& y) {
  expect_f32("add_to", "x", x);
  expect_shape("add_to", "y", y, x.shape());
  float* out = y.f32();
  over_elements(
      tape, x, [&](std::int64_t i, std::size_t n) { binary(Binary::add, x.f32() + i, out + i, out + i, n); });
}

}  // namespace tessera::ops
