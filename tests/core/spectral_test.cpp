#include "core/spectral.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "core/error.h"
#include "tests/core/contracts.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;
constexpr double kPi = std::numbers::pi;

TEST(Spectral, MdctIsItsDefinition) {
  constexpr int kHop = 20, kFrames = 9;
  const Floats x = random_floats(kHop * kFrames, 1);
  const Floats y = run_layer(*mdct(kHop), x, {33});
  ASSERT_EQ(y.size(), x.size());
  for (int t = 0; t < kFrames; ++t) {
    for (int k = 0; k < kHop; ++k) {
      double sum = 0;
      for (int n = 0; n < 2 * kHop; ++n) {
        const int at = (t - 1) * kHop + n;
        if (at < 0) continue;
        sum += x[static_cast<std::size_t>(at)] * std::sin(kPi * (n + 0.5) / (2 * kHop)) *
               std::cos(kPi / kHop * (n + 0.5 + kHop / 2.0) * (k + 0.5));
      }
      ASSERT_NEAR(y[static_cast<std::size_t>(t * kHop + k)], std::sqrt(2.0 / kHop) * sum, 1e-5);
    }
  }
}

TEST(Spectral, InverseMdctGivesTheInputBackOneBlockLate) {
  constexpr int kHop = 32;
  const Floats x = random_floats(kHop * 20, 2);
  const Floats y = run_layer(*inverse_mdct(kHop), run_layer(*mdct(kHop), x, {100}), {3});
  ASSERT_EQ(y.size(), x.size());
  for (std::size_t i = kHop; i < y.size(); ++i) ASSERT_NEAR(y[i], x[i - kHop], 1e-5) << i;
}

TEST(Spectral, StftIsItsDefinition) {
  constexpr int kLength = 24, kHop = 10, kBins = kLength / 2 + 1;
  const Floats window = hann_window(kLength), x = random_floats(kHop * 12, 3);
  EXPECT_NEAR(window[kLength / 2], 1.0f, 1e-7);
  EXPECT_NEAR(window[kLength / 4], 0.5f, 1e-7);
  const Floats y = run_layer(*stft(window, kHop), x, {7});
  ASSERT_EQ(y.size(), 12u * 2 * kBins);
  for (int t = 0; t < 12; ++t) {
    for (int k = 0; k < kBins; ++k) {
      std::complex<double> sum = 0;
      for (int n = 0; n < kLength; ++n) {
        const int at = (t + 1) * kHop - kLength + n;
        if (at >= 0)
          sum += static_cast<double>(x[static_cast<std::size_t>(at)] * window[static_cast<std::size_t>(n)]) *
                 std::polar(1.0, -2 * kPi * k * n / kLength);
      }
      ASSERT_NEAR(y[static_cast<std::size_t>(t * 2 * kBins + k)], sum.real(), 1e-5);
      ASSERT_NEAR(y[static_cast<std::size_t>(t * 2 * kBins + kBins + k)], sum.imag(), 1e-5);
    }
  }
}

TEST(Spectral, InverseStftGivesTheInputBack) {
  constexpr int kLength = 32, kHop = 8;
  const Floats window = hann_window(kLength), x = random_floats(kHop * 30, 4);
  const Floats y = run_layer(*inverse_stft(window, kHop), run_layer(*stft(window, kHop), x, {50}), {1, 4});
  constexpr std::size_t kLate = kLength - kHop;
  for (std::size_t i = kLength; i < y.size(); ++i) ASSERT_NEAR(y[i], x[i - kLate], 1e-5) << i;
}

TEST(Spectral, KeepsTheContracts) {
  expect_contracts(*mdct(12), 100);
  expect_contracts(*inverse_mdct(12), 20);
  expect_contracts(*stft(hann_window(20), 6), 100);
  expect_contracts(*inverse_stft(hann_window(20), 5), 20);
}

TEST(Spectral, RefusesSizesThatDoNotWork) {
  EXPECT_THROW(mdct(0), UsageError);
  EXPECT_THROW(stft(hann_window(21), 7), UsageError);
  EXPECT_THROW(stft(hann_window(20), 21), UsageError);
  EXPECT_THROW(inverse_stft(hann_window(20), 6), UsageError);
  EXPECT_THROW(inverse_stft(hann_window(20), 20), UsageError);  // the window is zero at its start
}

}  // namespace
}  // namespace tessera::test
