// Convolutions and matrix products with gradients: one table of cases against plain loops in double
// precision, finite differences, and any number of threads; in f32 and bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "core/error.h"
#include "tests/autograd/conv_cases.h"

namespace tessera {
namespace {

using namespace conv_testing;

void expect_agreement(const Case& c, const Outputs& out, const Reference& r, double tolerance) {
  expect_near("y", out.y, r.y, tolerance);
  expect_near("dx", out.dx, r.dx, tolerance);
  expect_near("dw", out.dw, r.dw, tolerance);
  if (c.bias) expect_near("dbias", out.dbias, r.dbias, tolerance);
}

void expect_equal(const char* what, const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << what;
}

float as_it_is(float value) {
  return value;
}
float as_bf16(float value) {
  return bf16_to_f32(f32_to_bf16(value));
}

TEST(Conv, AgreesWithPlainLoops) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Inputs in(c);
    const Outputs out = run(c, in, 2);
    expect_agreement(c, out, reference(c, in, out.y, as_it_is), 2e-6);
  }
}

// Along random directions, whose derivative is the inner product with the gradient.
TEST(Conv, GradientsAgreeWithFiniteDifferences) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Inputs in(c);
    const Outputs out = run(c, in, 1);
    const Tensor dy = output_gradient(out.y.shape());
    ThreadPool pool;
    Tape tape(pool);
    const auto loss = [&](const Inputs& at) {
      const Tensor y = ops::conv2d(tape, at.x, at.w, at.bias, c.options);
      double sum = 0;
      for (std::int64_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y.f32()[i]) * dy.f32()[i];
      return sum;
    };
    const auto check = [&](const char* what, Tensor Inputs::*member, const Tensor& gradient) {
      SCOPED_TRACE(what);
      const Tensor direction = random_tensor((in.*member).shape(), 9);
      constexpr float kStep = 1.0f / 256;
      double expected = 0, size = 0;
      Inputs above = in, below = in;
      above.*member = random_tensor(direction.shape(), 9);
      below.*member = random_tensor(direction.shape(), 9);
      for (std::int64_t i = 0; i < direction.size(); ++i) {
        const double term = static_cast<double>(direction.f32()[i]) * gradient.f32()[i];
        expected += term;
        size += term * term;
        (above.*member).f32()[i] = (in.*member).f32()[i] + kStep * direction.f32()[i];
        (below.*member).f32()[i] = (in.*member).f32()[i] - kStep * direction.f32()[i];
      }
      EXPECT_NEAR((loss(above) - loss(below)) / (2.0 * kStep), expected, 0.02 * std::sqrt(size));
    };
    check("dx", &Inputs::x, out.dx);
    check("dw", &Inputs::w, out.dw);
    if (c.bias) check("dbias", &Inputs::bias, out.dbias);
  }
}

void expect_thread_invariance(Precision precision) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Inputs in(c);
    const Outputs one = run(c, in, 1, precision);
    for (const int threads : {2, 3}) {
      const Outputs more = run(c, in, threads, precision);
      expect_equal("y", more.y, one.y);
      expect_equal("dx", more.dx, one.dx);
      expect_equal("dw", more.dw, one.dw);
      if (c.bias) expect_equal("dbias", more.dbias, one.dbias);
    }
  }
}

TEST(Conv, IsThreadInvariant) {
  expect_thread_invariance(Precision::f32);
}

TEST(Conv, IsThreadInvariantInBf16) {
  expect_thread_invariance(Precision::bf16);
}

TEST(Conv, MultipliesRoundedOperandsInBf16) {
  if (!ops::bf16_products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Inputs in(c);
    const Outputs out = run(c, in, 2, Precision::bf16);
    expect_agreement(c, out, reference(c, in, out.y, as_bf16), 1e-5);
    expect_agreement(c, out, reference(c, in, out.y, as_it_is), 1e-2);
  }
}

// A loss in f32 on top of a network in bf16: each keeps its own.
TEST(Conv, GradientsMultiplyInThePrecisionOfTheOutput) {
  if (!ops::bf16_products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  const Case c{"along W", {2, 1, 31, 16}, {1, 7, 16, 32}, padded(0, 0, 6, 0)};
  const Inputs in(c);
  for (const auto& [before, after] :
       {std::pair{Precision::f32, Precision::bf16}, {Precision::bf16, Precision::f32}}) {
    const Outputs expected = run(c, in, 1, before);
    ThreadPool pool;
    Tape tape(pool, before);
    const Tensor x = parameter(in.x), w = parameter(in.w);
    const Tensor y = ops::conv2d(tape, x, w, in.bias, c.options);
    tape.set_precision(after);
    tape.backward(y, output_gradient(y.shape()));
    expect_equal("dx", gradient_of(x), expected.dx);
    expect_equal("dw", gradient_of(w), expected.dw);
  }
}

TEST(Conv, GradientsAloneAreThoseOfTheTape) {
  for (const Case& c : cases()) {
    if (c.options.post != Activation::none) continue;
    SCOPED_TRACE(c.name);
    const Inputs in(c);
    const Outputs out = run(c, in, 1);
    ThreadPool pool;
    Tape tape(pool);
    const Tensor dy = output_gradient(out.y.shape());
    expect_equal("dx", ops::conv2d_input_gradient(tape, dy, in.w, c.x, c.options), out.dx);
    expect_equal("dw", ops::conv2d_weight_gradient(tape, dy, in.x, c.w, c.options), out.dw);
  }
}

TEST(Conv, NothingIsRecordedWithoutAParameter) {
  ThreadPool pool;
  Tape tape(pool);
  const Inputs in(cases()[0]);
  EXPECT_FALSE(ops::conv2d(tape, in.x, in.w, in.bias).recorded());
  EXPECT_EQ(tape.recorded(), 0u);
  EXPECT_TRUE(ops::conv2d(tape, in.x, parameter(in.w), in.bias).recorded());
  EXPECT_EQ(tape.recorded(), 1u);
}

TEST(Conv, MatmulIsTheConvolutionWithOneTap) {
  ThreadPool pool(2);
  Tape tape(pool);
  const Case c{"one tap", {2, 3, 5, 33}, {1, 1, 33, 18}};
  const Inputs in(c);
  const Outputs conv = run(c, in, 1);
  const Tensor x = parameter(in.x.reshaped({6, 5, 33})), w = parameter(in.w.reshaped({33, 18}));
  const Tensor bias = parameter(in.bias);
  const Tensor y = ops::matmul(tape, x, w, bias);
  EXPECT_EQ(y.shape(), (Shape{6, 5, 18}));
  tape.backward(y, output_gradient(conv.y.shape()).reshaped(y.shape()));
  expect_equal("y", y.reshaped(conv.y.shape()), conv.y);
  expect_equal("dx", gradient_of(x).reshaped(c.x), conv.dx);
  expect_equal("dw", gradient_of(w).reshaped(c.w), conv.dw);
  expect_equal("dbias", gradient_of(bias), conv.dbias);
  EXPECT_EQ(ops::matmul(tape, random_tensor({33}, 1), in.w.reshaped({33, 18})).shape(), (Shape{18}));
}

// What the error says must name the op and the shape that came.
template <class Body>
void expect_usage_error(const std::string& text, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "no error that says " << text;
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Conv, BadArgumentsThrow) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = random_tensor({2, 5, 6, 3}, 1), w = random_tensor({3, 3, 3, 4}, 2);
  const auto conv = [&](const ops::Conv2dOptions& o) { return ops::conv2d(tape, x, w, {}, o); };
  expect_usage_error("[conv2d] expected x [B, H, W, 3], got [2, 5, 6, 4]", [&] {
    ops::conv2d(tape, random_tensor({2, 5, 6, 4}, 1), w, {});
  });
  expect_usage_error("[conv2d] expected x [B, H, W, C], got [5, 6, 3]", [&] {
    ops::conv2d(tape, random_tensor({5, 6, 3}, 1), w, {});
  });
  expect_usage_error("got none", [&] { ops::conv2d(tape, {}, w, {}); });
  expect_usage_error("of f64", [&] { ops::conv2d(tape, Tensor::zeros({2, 5, 6, 3}, DType::f64), w, {}); });
  expect_usage_error("a bias [4]", [&] { ops::conv2d(tape, x, w, random_tensor({3}, 1)); });
  expect_usage_error("a stride of W", [&] { conv(strided(1, 0)); });
  expect_usage_error("a dilation of H", [&] { conv(dilated(0, 1)); });
  expect_usage_error("a stride or a dilation of W", [&] { conv(strided(1, 2, dilated(1, 2))); });
  expect_usage_error("padding of H", [&] { conv(padded(0, -1, 0, 0)); });
  expect_usage_error("at least 7 along H", [&] { conv(dilated(3, 1)); });
  expect_usage_error("none, elu or leaky_relu", [&] { conv(padded(0, 0, 0, 0, Activation::gelu)); });
  expect_usage_error("[conv1d] expected x [B, T, 3]", [&] {
    ops::conv1d(tape, x, random_tensor({3, 3, 4}, 1), {});
  });
  expect_usage_error("[conv_transpose1d] expected a kernel that is a multiple of the stride 2", [&] {
    ops::conv_transpose1d(tape, random_tensor({1, 4, 3}, 1), random_tensor({3, 3, 4}, 1), {}, 2);
  });
  expect_usage_error("[matmul] expected x [..., 3]", [&] {
    ops::matmul(tape, random_tensor({4}, 1), random_tensor({3, 5}, 1));
  });
  expect_usage_error("a gradient [2, 3, 4, 4]",
                     [&] { ops::conv2d_weight_gradient(tape, x, x, w.shape(), {}); });
  expect_usage_error("a gradient [2, 3, 4, 4]",
                     [&] { ops::conv2d_input_gradient(tape, x, w, x.shape(), {}); });
}

}  // namespace
}  // namespace tessera
