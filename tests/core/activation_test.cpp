// Element-wise functions: values against double precision over all magnitudes, special values, the same bits
// under every instruction set, at every place and for every length.
#include "core/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "tests/core/on_every_target.h"

namespace tessera {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

struct Case {
  const char* name;
  Activation function;
  double (*reference)(double);
  double ulps;      // allowed error in units of the last place of the true value ...
  double absolute;  // ... or this much
};

const Case kCases[] = {
    {"none", Activation::none, [](double x) { return x; }, 0.0, 0.0},
    {"elu", Activation::elu, [](double x) { return x > 0.0 ? x : std::expm1(x); }, 2.0, 0.0},
    {"gelu", Activation::gelu, [](double x) { return x / 2.0 * std::erfc(-x / std::numbers::sqrt2); }, 5.0,
     5e-8},
    {"gelu_tanh", Activation::gelu_tanh,
     [](double x) {
       return x * logistic(2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x));
     },
     5.0, 5e-8},
    {"silu", Activation::silu, [](double x) { return x * logistic(x); }, 3.0, 1e-35},
    {"relu", Activation::relu, [](double x) { return x < 0.0 ? 0.0 : x; }, 0.0, 0.0},
    {"leaky_relu", Activation::leaky_relu, [](double x) { return x < 0.0 ? x * 0.01 : x; }, 1.0, 0.0},
    {"tanh", Activation::tanh, [](double x) { return std::tanh(x); }, 3.0, 0.0},
    {"sigmoid", Activation::sigmoid, logistic, 3.0, 1e-37},
    {"exp", Activation::exp, [](double x) { return std::exp(x); }, 1.5, 2.5e-38},
    {"sin", Activation::sin, [](double x) { return std::sin(x); }, 2.0, 0.0},
    {"cos", Activation::cos, [](double x) { return std::cos(x); }, 2.0, 3e-7},
    {"erf", Activation::erf, [](double x) { return std::erf(x); }, 2.0, 0.0},
    {"log", Activation::log, [](double x) { return std::log(x); }, 1.0, 0.0},
    {"signed_sqrt", Activation::signed_sqrt,
     [](double x) { return x == 0.0 ? x : std::copysign(std::sqrt(std::abs(x) + 1e-9), x); }, 1.0, 0.0},
    {"signed_square", Activation::signed_square, [](double x) { return x * std::abs(x); }, 0.51, 1.2e-38},
};

/// Every `step`th of the 2^32 floats, NaNs and infinities among them.
std::vector<float> float_sweep(std::uint64_t step) {
  std::vector<float> values = {0.0f, -0.0f, kInf, -kInf, kNaN, 1.0f, -1.0f};
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += step) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  return values;
}

std::vector<float> evaluate(Activation function, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  activate(function, x.data(), y.data(), x.size());
  return y;
}

float at(Activation function, float x) {
  return evaluate(function, {x})[0];
}

/// The distance of the floats around x.
double ulp(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(Activation, AgreesWithDoublePrecision) {
  const std::vector<float> x = float_sweep(19997);
  for (const Case& c : kCases) {
    const bool periodic = c.function == Activation::sin || c.function == Activation::cos;
    const std::vector<float> y = evaluate(c.function, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = c.reference(x[i]);
      if (periodic && std::abs(x[i]) > 0x1p22f && std::isfinite(x[i])) continue;
      if (std::isnan(want)) {
        // The formulas of the reference give inf * 0 at -inf; the functions their limit, which is tested
        // below.
        ASSERT_TRUE(x[i] == -kInf || std::isnan(y[i])) << c.name << " of " << x[i] << " is " << y[i];
      } else if (std::isinf(static_cast<float>(want)) || std::isinf(y[i])) {
        ASSERT_EQ(y[i], static_cast<float>(want)) << c.name << " of " << x[i];
      } else {
        ASSERT_LE(std::abs(y[i] - want), std::max(c.ulps * ulp(want), c.absolute))
            << c.name << " of " << x[i] << " is " << y[i] << ", true value " << want;
      }
    }
  }
}

TEST(Activation, LimitsAtInfinity) {
  EXPECT_EQ(at(Activation::elu, -kInf), -1.0f);
  EXPECT_EQ(at(Activation::gelu, -kInf), 0.0f);
  EXPECT_EQ(at(Activation::gelu_tanh, -kInf), 0.0f);
  EXPECT_EQ(at(Activation::silu, -kInf), 0.0f);
  EXPECT_EQ(at(Activation::exp, -kInf), 0.0f);
  EXPECT_EQ(at(Activation::exp, 88.73f), kInf);
  EXPECT_EQ(at(Activation::log, 0.0f), -kInf);
  EXPECT_TRUE(std::isnan(at(Activation::log, -1.0f)));
  for (const Activation f : {Activation::elu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    EXPECT_EQ(at(f, kInf), kInf);
  }
  for (const Activation f : {Activation::tanh, Activation::erf}) EXPECT_EQ(at(f, -kInf), -1.0f);
}

TEST(Activation, SineBeyondItsDomain) {
  EXPECT_EQ(at(Activation::sin, 0x1.8p22f), 0.0f);
  EXPECT_EQ(at(Activation::cos, 0x1.8p22f), 1.0f);
  EXPECT_TRUE(std::isnan(at(Activation::sin, -kInf)));
}

TEST(Activation, OddFunctionsAreOdd) {
  const std::vector<float> x = float_sweep(999983);
  std::vector<float> minus_x(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) minus_x[i] = -x[i];
  for (const Activation f : {Activation::tanh, Activation::sin, Activation::erf, Activation::signed_sqrt,
                             Activation::signed_square}) {
    const std::vector<float> y = evaluate(f, x), mirrored = evaluate(f, minus_x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(y[i] == -mirrored[i] || (std::isnan(y[i]) && std::isnan(mirrored[i]))) << x[i];
    }
  }
}

TEST(Activation, SameBitsOnEveryTarget) {
  const std::vector<float> x = float_sweep(299993);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    test::expect_same_on_every_target([&] { return evaluate(c.function, x); });
  }
}

TEST(Activation, SameBitsAtEveryPlaceAndLength) {
  const std::vector<float> x = test::noise(80, 1, 3.0f);
  for (const Case& c : kCases) {
    const std::vector<float> all = evaluate(c.function, x);
    for (std::size_t count = 0; count <= 70; ++count) {
      const std::size_t offset = count % 10;
      std::vector<float> y(80, -77.0f);
      std::vector<float> want = y;
      activate(c.function, x.data() + offset, y.data() + offset, count);
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(offset), count,
                  want.begin() + static_cast<std::ptrdiff_t>(offset));
      test::expect_same_bits(y, want, c.name);
      std::vector<float> in_place = x;
      activate(c.function, in_place.data() + offset, in_place.data() + offset, count);
      for (std::size_t i = 0; i < 80; ++i) {
        const bool inside = i >= offset && i < offset + count;
        ASSERT_TRUE(test::same_bits(in_place[i], inside ? all[i] : x[i])) << c.name << " in place, " << i;
      }
    }
  }
}

TEST(Snake, AgreesWithDoublePrecision) {
  const int channels = 37;
  const std::size_t rows = 70;
  const std::vector<float> x = test::noise(rows * channels, 2, 2.0f);
  std::vector<float> alpha = test::noise(channels, 3);
  alpha[0] = 0.0f;  // x + sin(0)^2 / 1e-9 = x
  std::vector<float> y(x.size());
  snake(x.data(), alpha.data(), y.data(), rows, channels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = alpha[i % channels];
    const double s = std::sin(a * x[i]);
    const double want = x[i] + s * s / (a + 1e-9);
    // The float product alpha x is off by half an ulp, which sin^2 / alpha passes on to x.
    EXPECT_NEAR(y[i], want, 2e-7 * (1.0 + std::abs(x[i]) + std::abs(s * s / (a + 1e-9)))) << i;
  }
}

TEST(Snake, SameBitsOnEveryTargetAndAlone) {
  for (const int channels : {1, 7, 16, 33, 70}) {
    const std::size_t rows = 35;
    const auto width = static_cast<std::size_t>(channels);
    const std::vector<float> x = test::noise(rows * width, 4);
    const std::vector<float> alpha = test::noise(width, 5);
    std::vector<float> all(x.size());
    snake(x.data(), alpha.data(), all.data(), rows, channels);
    test::expect_same_on_every_target([&] {
      std::vector<float> y = x;
      snake(y.data(), alpha.data(), y.data(), rows, channels);
      return y;
    });
    std::vector<float> single(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) snake(&x[i], &alpha[i % width], &single[i], 1, 1);
    test::expect_same_bits(single, all, "one element at a time");
  }
}

TEST(Activation, AddScaleAndRamp) {
  const std::vector<float> x = test::noise(21, 6);
  std::vector<float> y = test::noise(21, 7);
  const std::vector<float> before = y;
  add(x.data(), y.data(), y.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], before[i] + x[i]);

  y = before;
  scale_channels(x.data(), y.data(), 3, 7);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], before[i] * x[i % 7]);

  std::vector<float> ones(8, 1.0f);
  ramp(1.0f, 0.0f, ones.data(), 4, 2);
  EXPECT_EQ(ones, (std::vector<float>{0.75f, 0.75f, 0.5f, 0.5f, 0.25f, 0.25f, 0.0f, 0.0f}));
  std::vector<float> held(6, 0.3f);
  ramp(0.1f, 0.7f, held.data(), 3, 2);
  EXPECT_EQ(held[5], 0.7f * 0.3f);
}

TEST(Activation, RejectsNegativeChannels) {
  float value = 0.0f;
  EXPECT_THROW(snake(&value, &value, &value, 1, -1), UsageError);
  EXPECT_THROW(scale_channels(&value, &value, 1, -1), UsageError);
  EXPECT_THROW(ramp(0.0f, 1.0f, &value, 1, -1), UsageError);
}

}  // namespace
}  // namespace tessera
