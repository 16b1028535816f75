// Convolutions with their inputs and plain loops in double precision: shared by the tests of convolutions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/autograd/conv.h"
#include "tests/random.h"

namespace tessera::conv_testing {

struct Case {
  const char* name;
  Shape x, w;  // [B, H, W, C], [KH, KW, C, O]
  ops::Conv2dOptions options = {};
  bool bias = true;
};

inline ops::Conv2dOptions padded(int top, int bottom, int left, int right,
                                 Activation post = Activation::none) {
  ops::Conv2dOptions o;
  o.pad_top = top, o.pad_bottom = bottom, o.pad_left = left, o.pad_right = right;
  o.post = post;
  return o;
}

inline ops::Conv2dOptions strided(int stride_h, int stride_w, ops::Conv2dOptions o = {}) {
  o.stride_h = stride_h, o.stride_w = stride_w;
  return o;
}

inline ops::Conv2dOptions dilated(int dilation_h, int dilation_w, ops::Conv2dOptions o = {}) {
  o.dilation_h = dilation_h, o.dilation_w = dilation_w;
  return o;
}

inline std::vector<Case> cases() {
  const Activation elu = Activation::elu, leaky = Activation::leaky_relu;
  return {
      {"one tap", {2, 3, 5, 7}, {1, 1, 7, 9}},
      {"one tap, padded", {1, 2, 3, 2}, {1, 1, 2, 3}, padded(1, 0, 2, 1)},
      {"one column", {1, 1, 40, 33}, {1, 3, 33, 1}, padded(0, 0, 2, 0)},
      {"along W", {2, 1, 31, 16}, {1, 7, 16, 32}, padded(0, 0, 6, 0, elu)},
      {"along W, odd", {3, 1, 19, 3}, {1, 3, 3, 17}, padded(0, 0, 1, 1), false},
      {"along W, dilated", {2, 1, 30, 5}, {1, 3, 5, 8}, dilated(1, 9, padded(0, 0, 18, 0))},
      {"along W, dilated, rows", {2, 3, 14, 2}, {1, 3, 2, 18}, dilated(1, 4, padded(1, 1, 8, 0))},
      {"along W, strided", {2, 1, 64, 6}, {1, 8, 6, 20}, strided(1, 4, padded(0, 0, 4, 0, elu))},
      {"along W, stride not in kernel", {2, 1, 41, 3}, {1, 7, 3, 10}, strided(1, 3, padded(0, 0, 5, 2))},
      {"along W, stride beyond kernel", {1, 1, 23, 4}, {1, 2, 4, 5}, strided(1, 5, padded(0, 0, 1, 0))},
      {"along H", {2, 17, 1, 4}, {5, 1, 4, 6}, padded(4, 0, 0, 0)},
      {"along H, strided, wide", {2, 16, 3, 5}, {5, 1, 5, 7}, strided(3, 1, padded(2, 2, 0, 0, leaky))},
      {"along H, dilated", {1, 16, 4, 2}, {3, 1, 2, 6}, dilated(3, 1, padded(6, 0, 0, 0)), false},
      {"spectrogram", {2, 9, 21, 2}, {3, 9, 2, 32}, strided(1, 2, padded(1, 1, 4, 4, leaky))},
      {"spectrogram, dilated",
       {2, 11, 17, 4},
       {3, 5, 4, 8},
       dilated(2, 1, strided(1, 2, padded(2, 2, 2, 2)))},
      {"spectrogram, dilated both ways", {2, 9, 13, 3}, {3, 3, 3, 4}, dilated(2, 3, padded(4, 0, 3, 3))},
      {"spectrogram, to one", {2, 8, 12, 16}, {3, 3, 16, 1}, padded(1, 1, 1, 1)},
      {"strided both ways", {2, 10, 15, 3}, {4, 3, 3, 5}, strided(2, 2, padded(1, 2, 1, 1, elu))},
      {"kernel as large as x", {2, 4, 6, 3}, {4, 6, 3, 5}, {}},
      {"more pads than kernel", {1, 3, 4, 2}, {2, 2, 2, 3}, padded(3, 2, 4, 5)},
      {"many positions", {3, 7, 150, 4}, {2, 3, 4, 19}, padded(1, 0, 1, 1)},
      {"long, wide", {1, 1, 1100, 24}, {1, 3, 24, 40}, padded(0, 0, 2, 0)},
      {"long, strided", {2, 1, 300, 3}, {1, 8, 3, 10}, strided(1, 4, padded(0, 0, 5, 3))},
      {"long, dilated", {3, 1, 200, 4}, {1, 3, 4, 6}, dilated(1, 9, padded(0, 0, 18, 2))},
      {"long, few channels", {2, 1, 400, 1}, {1, 7, 1, 16}, padded(0, 0, 6, 0)},
      {"large gradient", {2, 1, 40, 150}, {1, 3, 150, 150}, padded(0, 0, 2, 0)},
  };
}

inline Tensor random_tensor(const Shape& shape, std::uint64_t seed, float scale = 1.0f) {
  Tensor t = Tensor::zeros(shape);
  const std::vector<float> values = test::random_floats(static_cast<std::size_t>(t.size()), seed, scale);
  std::memcpy(t.raw(), values.data(), t.bytes());
  return t;
}

// Inputs of a case and the gradient of its output; undefined bias where there is none.
struct Inputs {
  explicit Inputs(const Case& c)
      : x(random_tensor(c.x, 1)),
        w(random_tensor(c.w, 2, 0.3f)),
        bias(c.bias ? random_tensor({c.w[3]}, 3) : Tensor()) {}
  Tensor x, w, bias;
};

struct Outputs {
  Tensor y, dx, dw, dbias;
};

inline Tensor output_gradient(const Shape& y) {
  return random_tensor(y, 4);
}

inline Outputs run(const Case& c, const Inputs& in, int threads, Precision precision = Precision::f32) {
  ThreadPool pool(threads);
  Tape tape(pool, precision);
  const Tensor x = parameter(in.x), w = parameter(in.w), bias = c.bias ? parameter(in.bias) : Tensor();
  Outputs out;
  out.y = ops::conv2d(tape, x, w, bias, c.options);
  tape.backward(out.y, output_gradient(out.y.shape()));
  out.dx = gradient_of(x), out.dw = gradient_of(w);
  if (c.bias) out.dbias = gradient_of(bias);
  return out;
}

using Doubles = std::vector<double>;

struct Reference {
  Doubles y, dx, dw, dbias;
};

// Calls body(y index, x index, w index) for every product of a convolution.
template <class Body>
void for_products(const Case& c, const Shape& y, const Body& body) {
  const ops::Conv2dOptions& o = c.options;
  std::size_t at = 0;
  for (std::int64_t b = 0; b < y[0]; ++b)
    for (std::int64_t i = 0; i < y[1]; ++i)
      for (std::int64_t j = 0; j < y[2]; ++j)
        for (std::int64_t n = 0; n < y[3]; ++n, ++at)
          for (std::int64_t kh = 0; kh < c.w[0]; ++kh)
            for (std::int64_t kw = 0; kw < c.w[1]; ++kw) {
              const std::int64_t h = i * o.stride_h + kh * o.dilation_h - o.pad_top;
              const std::int64_t v = j * o.stride_w + kw * o.dilation_w - o.pad_left;
              if (h < 0 || h >= c.x[1] || v < 0 || v >= c.x[2]) continue;
              for (std::int64_t k = 0; k < c.x[3]; ++k) {
                body(at, static_cast<std::size_t>(((b * c.x[1] + h) * c.x[2] + v) * c.x[3] + k),
                     static_cast<std::size_t>(((kh * c.w[1] + kw) * c.w[2] + k) * c.w[3] + n));
              }
            }
}

// Operands go through `rounded` first, as the products see them; `y` is the output that the gradient of the
// activation is taken at.
template <class Rounded>
Reference reference(const Case& c, const Inputs& in, const Tensor& y, const Rounded& rounded) {
  const Tensor dy = output_gradient(y.shape());
  const auto size = [](const Tensor& t) { return static_cast<std::size_t>(t.size()); };
  Reference r{Doubles(size(y)), Doubles(size(in.x)), Doubles(size(in.w)),
              Doubles(static_cast<std::size_t>(c.w[3]))};
  const std::size_t outputs = r.dbias.size();
  std::vector<float> g(size(y));
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float value = y.f32()[i];
    float slope = 1.0f;
    if (value <= 0 && c.options.post == Activation::elu) slope = value + 1.0f;
    if (value <= 0 && c.options.post == Activation::leaky_relu) slope = c.options.slope;
    g[i] = dy.f32()[i] * slope;
    r.dbias[i % outputs] += g[i];
    if (c.bias) r.y[i] = in.bias.f32()[i % outputs];
  }
  for_products(c, y.shape(), [&](std::size_t at, std::size_t from, std::size_t weight) {
    const double x = rounded(in.x.f32()[from]), w = rounded(in.w.f32()[weight]), d = rounded(g[at]);
    r.y[at] += x * w;
    r.dx[from] += d * w;
    r.dw[weight] += d * x;
  });
  for (double& value : r.y) {
    if (value <= 0 && c.options.post == Activation::elu) value = std::expm1(value);
    if (value <= 0 && c.options.post == Activation::leaky_relu) value *= c.options.slope;
  }
  return r;
}

inline void expect_near(const char* what, const Tensor& got, const Doubles& expected, double tolerance) {
  SCOPED_TRACE(what);
  ASSERT_TRUE(got.defined());
  ASSERT_EQ(static_cast<std::size_t>(got.size()), expected.size());
  double most = 1e-3;
  for (const double value : expected) most = std::max(most, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got.f32()[i], expected[i], tolerance * most) << "at " << i << " of " << got.shape().str();
  }
}

}  // namespace tessera::conv_testing
