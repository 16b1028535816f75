// The functions for tables against the C library in extended precision, and a few results to the bit, which
// every machine must give.
#include "core/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"

namespace tessera {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kTrials = 20000;

double relative_error(double got, long double want) {
  return static_cast<double>(std::abs((got - want) / (want == 0.0L ? 1.0L : want)));
}

class ExactMath : public testing::Test {
 protected:
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator_);
  }

 private:
  std::mt19937_64 generator_{7};
};

TEST_F(ExactMath, Exp) {
  for (int i = 0; i < kTrials; ++i) {
    const double x = i % 2 ? between(-1.0, 1.0) : between(-700.0, 700.0);
    ASSERT_LT(relative_error(exact_exp(x), std::exp(static_cast<long double>(x))), 5e-16) << x;
  }
  EXPECT_EQ(exact_exp(0.0), 1.0);
  EXPECT_EQ(exact_exp(-kInf), 0.0);
  EXPECT_EQ(exact_exp(kInf), kInf);
  EXPECT_EQ(exact_exp(710.0), kInf);
  EXPECT_TRUE(std::isnan(exact_exp(kNaN)));
  EXPECT_NEAR(exact_exp(-740.0), std::exp(-740.0), 5e-324);
}

TEST_F(ExactMath, Log) {
  for (int i = 0; i < kTrials; ++i) {
    const double x =
        i % 2 ? between(0.5, 2.0) : std::ldexp(between(1.0, 2.0), static_cast<int>(between(-1070, 1023)));
    ASSERT_LT(relative_error(exact_log(x), std::log(static_cast<long double>(x))), 5e-16) << x;
  }
  EXPECT_EQ(exact_log(1.0), 0.0);
  EXPECT_EQ(exact_log(0.0), -kInf);
  EXPECT_EQ(exact_log(kInf), kInf);
  EXPECT_TRUE(std::isnan(exact_log(-1.0)));
  EXPECT_TRUE(std::isnan(exact_log(kNaN)));
}

TEST_F(ExactMath, PowForRopeFrequencies) {
  for (const double base : {10000.0, 500000.0, 1e6, 2.0}) {
    for (int i = 0; i < 128; ++i) {
      const long double want = std::pow(static_cast<long double>(base), -i / 128.0L);
      ASSERT_LT(relative_error(exact_pow(base, -i / 128.0), want), 1e-14) << base << " " << i;
    }
  }
  EXPECT_EQ(exact_pow(0.0, 2.0), 0.0);
  EXPECT_EQ(exact_pow(7.0, 0.0), 1.0);
  EXPECT_TRUE(std::isnan(exact_pow(-2.0, 3.0)));
}

TEST_F(ExactMath, SinAndCosOfAnglesUpToTheLimit) {
  for (int i = 0; i < kTrials; ++i) {
    const double x = i % 3 == 0 ? between(-4.0, 4.0) : i % 3 == 1 ? between(0.0, 1e8) : between(-8e8, 8e8);
    ASSERT_NEAR(exact_sin(x), static_cast<double>(std::sin(static_cast<long double>(x))), 5e-16) << x;
    ASSERT_NEAR(exact_cos(x), static_cast<double>(std::cos(static_cast<long double>(x))), 5e-16) << x;
  }
  EXPECT_EQ(exact_sin(0.0), 0.0);
  EXPECT_EQ(exact_cos(0.0), 1.0);
  EXPECT_TRUE(std::isnan(exact_sin(kInf)));
  EXPECT_TRUE(std::isnan(exact_cos(kNaN)));
  EXPECT_THROW(exact_sin(1e9), UsageError);
  EXPECT_THROW(exact_cos(-1e9), UsageError);
}

}  // namespace
}  // namespace tessera
