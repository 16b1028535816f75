#include "core/spectral_smoother.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "tests/core/contracts.h"
#include "tests/core/spectral_smoother_reference.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

const SpectralSmootherOptions kSmall{.hop = 16, .bins = 5, .before = 2, .after = 1};

TEST(SpectralSmoother, AgreesWithTheFormulas) {
  for (const SpectralSmootherOptions& options :
       {kSmall, SpectralSmootherOptions{.hop = 9, .bins = 9, .before = 0, .after = 2},
        SpectralSmootherOptions{.hop = 12, .bins = 1, .before = 1, .after = 0}}) {
    const std::vector<float> x = random_floats(static_cast<std::size_t>(options.hop) * 20, 3);
    const std::vector<float> y = run_layer(SpectralSmoother(options), x, {static_cast<int>(x.size())});
    const std::vector<double> want = SpectralSmootherReference(options, {x.begin(), x.end()}).output();
    ASSERT_EQ(y.size(), want.size());
    for (std::size_t n = 0; n < y.size(); ++n) ASSERT_NEAR(y[n], want[n], 4e-6) << "sample " << n;
  }
}

std::vector<float> tone(std::size_t samples, double period, double flicker) {
  std::vector<float> x(samples);
  for (std::size_t n = 0; n < samples; ++n) {
    const double t = static_cast<double>(n);
    const double level = 1 + flicker * ((n / 60) % 2 ? 1 : -1);
    x[n] = static_cast<float>(0.4 * level * std::sin(2 * std::numbers::pi * t / period));
  }
  return x;
}

// Root mean square of the error, in the middle, against a steady tone.
double error(const SpectralSmootherOptions& options, double period, double flicker) {
  const SpectralSmoother smoother(options);
  const std::vector<float> x = tone(4000, period, flicker), clean = tone(4000, period, 0);
  const std::vector<float> y = run_layer(smoother, x, {4000});
  double sum = 0;
  for (std::size_t n = 1000; n < 3000; ++n) {
    const double want = clean[n - static_cast<std::size_t>(smoother.delay())];
    sum += (y[n] - want) * (y[n] - want);
  }
  return std::sqrt(sum / 2000);
}

TEST(SpectralSmoother, SteadiesWhatFlickers) {
  const SpectralSmootherOptions options{.hop = 40, .bins = 12, .before = 2, .after = 1};
  EXPECT_LT(error(options, 20, 0), 1e-4);  // a steady tone stays
  const double untouched = 0.3 * 0.4 * std::sqrt(0.5);
  EXPECT_NEAR(error(options, 4, 0.3), untouched, 0.02 * untouched);  // above the bins
  EXPECT_LT(error(options, 20, 0.3), 0.6 * untouched);
}

TEST(SpectralSmoother, LeavesSilenceAlone) {
  EXPECT_EQ(run_layer(SpectralSmoother(kSmall), std::vector<float>(320), {320}), std::vector<float>(320));
}

TEST(SpectralSmoother, KeepsTheContracts) {
  expect_contracts(SpectralSmoother(kSmall), 700);
  expect_contracts(SpectralSmoother({.hop = 7, .bins = 7, .before = 0, .after = 0}), 100);
}

TEST(SpectralSmoother, RefusesOddSizes) {
  const auto refuse = [](auto change) {
    SpectralSmootherOptions options;
    change(options);
    EXPECT_THROW(SpectralSmoother{options}, UsageError);
  };
  refuse([](auto& o) { o.hop = 0; });
  refuse([](auto& o) { o.bins = 0; });
  refuse([](auto& o) { o.bins = o.hop + 1; });
  refuse([](auto& o) { o.before = -1; });
  refuse([](auto& o) { o.after = 9; });
}

}  // namespace
}  // namespace tessera::test
