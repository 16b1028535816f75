#include "metrics/fft.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "tests/random.h"

#include <gtest/gtest.h>

namespace tessera::metrics {
namespace {

std::vector<Complex> noise(std::size_t size) {
  const std::vector<float> values = test::random_floats(2 * size, size);
  std::vector<Complex> x(size);
  for (std::size_t i = 0; i < size; ++i) x[i] = {values[2 * i], values[2 * i + 1]};
  return x;
}

TEST(Fft, IsTheSumOfItsDefinition) {
  for (const std::size_t size : {2u, 4u, 8u, 32u, 64u, 512u}) {
    const std::vector<Complex> x = noise(size);
    std::vector<Complex> y = x, scratch(size);
    Fft(size).forward(y, scratch);
    for (std::size_t k = 0; k < size; ++k) {
      Complex sum;
      for (std::size_t n = 0; n < size; ++n) {
        sum += x[n] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(n * k % size) /
                                          static_cast<double>(size));
      }
      ASSERT_NEAR(std::abs(y[k] - sum), 0, 1e-12) << size << " " << k;
    }
  }
}

TEST(Fft, InverseReturns) {
  for (const std::size_t size : {2u, 1024u, 2048u, 1u << 17}) {
    const std::vector<Complex> x = noise(size);
    std::vector<Complex> y = x, scratch(size);
    const Fft fft(size);
    fft.forward(y, scratch);
    fft.inverse(y, scratch);
    for (std::size_t k = 0; k < size; ++k) {
      ASSERT_NEAR(std::abs(y[k] / static_cast<double>(size) - x[k]), 0, 1e-14) << size << " " << k;
    }
  }
}

TEST(Fft, TwoRealSoundsShareATransform) {
  constexpr std::size_t kSize = 64;
  const std::vector<Complex> x = noise(kSize);
  std::vector<Complex> z = x, a(kSize), b(kSize), scratch(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    a[i] = x[i].real();
    b[i] = x[i].imag();
  }
  const Fft fft(kSize);
  fft.forward(z, scratch);
  fft.forward(a, scratch);
  fft.forward(b, scratch);
  for (std::size_t k = 0; k <= kSize / 2; ++k) {
    const TwoBins bins = real_bins(z, k);
    EXPECT_NEAR(std::abs(bins.a - a[k]), 0, 1e-13) << k;
    EXPECT_NEAR(std::abs(bins.b - b[k]), 0, 1e-13) << k;
  }
}

TEST(Fft, RefusesOtherLengths) {
  EXPECT_THROW(Fft(0), UsageError);
  EXPECT_THROW(Fft(1), UsageError);
  EXPECT_THROW(Fft(12), UsageError);
  std::vector<Complex> x(8), scratch(4);
  EXPECT_THROW(Fft(8).forward(x, scratch), UsageError);
}

}  // namespace
}  // namespace tessera::metrics
