#include "core/pitch_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "tests/core/contracts.h"
#include "tests/core/pitch_filter_reference.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

const PitchFilterOptions kSmall{
    .hop = 20, .shortest = 5, .longest = 60, .before = 2, .after = 1, .smoothing = 6, .strength = 0.9f};

// Harmonics of a pitch that glides, with noise.
std::vector<float> voice(std::size_t samples, double noise) {
  std::vector<float> x = random_floats(samples, 7);
  double phase = 0;
  for (std::size_t n = 0; n < samples; ++n) {
    phase += 2 * std::numbers::pi / (40 + 6 * std::sin(0.002 * static_cast<double>(n)));
    x[n] = static_cast<float>(noise * x[n] + 0.4 * std::sin(phase) + 0.3 * std::sin(2 * phase + 1));
  }
  return x;
}

TEST(PitchFilter, AgreesWithTheFormulas) {
  for (const double noise : {0.02, 0.3, 1.0}) {
    const std::vector<float> x = voice(2000, noise);
    const std::vector<float> y = run_layer(PitchFilter(kSmall), x, {2000});
    const std::vector<double> want = PitchFilterReference(kSmall, {x.begin(), x.end()}).output();
    ASSERT_EQ(y.size(), want.size());
    for (std::size_t n = 0; n < y.size(); ++n) ASSERT_NEAR(y[n], want[n], 2e-6) << "sample " << n;
  }
}

TEST(PitchFilter, FollowsThePitch) {
  const std::vector<float> x = voice(4000, 0.1);
  const PitchFilterReference filter(kSmall, {x.begin(), x.end()});
  const int delay = PitchFilter(kSmall).delay();
  for (std::size_t i = 12; i < 190; ++i) {
    const double period = 40 + 6 * std::sin(0.002 * static_cast<double>(20 * static_cast<int>(i) - delay));
    EXPECT_NEAR(filter.period(i), period, 2) << i;
    EXPECT_GT(filter.weight(i), 0.6) << i;
  }
}

// Error energy between harmonics falls, and the harmonics stay.
TEST(PitchFilter, TakesNoiseFromPeriodicSound) {
  PitchFilterOptions options = kSmall;
  options.smoothing = 3;  // up to a third of the sample rate
  const PitchFilter filter(options);
  const auto error = [&](double noise) {
    std::vector<float> clean(8000), x = random_floats(8000, 9);
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double t = 2 * std::numbers::pi * static_cast<double>(n) / 40;
      clean[n] = static_cast<float>(0.4 * std::sin(t) + 0.3 * std::sin(2 * t + 1));
      x[n] = static_cast<float>(clean[n] + noise * x[n]);
    }
    const std::vector<float> y = run_layer(filter, x, {8000});
    double before = 0, after = 0;
    for (std::size_t n = 500; n < 7500; ++n) {
      const std::size_t from = n - static_cast<std::size_t>(filter.delay());
      before += std::pow(x[from] - clean[from], 2);
      after += std::pow(y[n] - clean[from], 2);
    }
    return after / std::max(before, 1.0);
  };
  EXPECT_LT(error(0), 1e-6);
  EXPECT_LT(error(0.3), 0.6);
}

TEST(PitchFilter, LeavesNoiseAndSilenceAlone) {
  const PitchFilter filter(kSmall);
  EXPECT_EQ(run_layer(filter, std::vector<float>(400), {400}), std::vector<float>(400));
  // Independent samples are alike by chance only.
  PitchFilterOptions options = kSmall;
  options.longest = 600;
  options.smoothing = 1;
  const PitchFilter wide(options);
  const std::vector<float> x = random_floats(6000, 3), y = run_layer(wide, x, {6000});
  for (std::size_t n = 3000; n < 6000; ++n) {
    ASSERT_EQ(y[n], x[n - static_cast<std::size_t>(wide.delay())]) << n;
  }
}

TEST(PitchFilter, KeepsTheContracts) {
  expect_contracts(PitchFilter(kSmall), 700);
  expect_contracts(
      PitchFilter({.hop = 7, .shortest = 3, .longest = 21, .before = 0, .after = 0, .smoothing = 2}), 100);
}

TEST(PitchFilter, RefusesOddSizes) {
  const auto refuse = [](auto change) {
    PitchFilterOptions options;
    change(options);
    EXPECT_THROW(PitchFilter{options}, UsageError);
  };
  refuse([](auto& o) { o.hop = 0; });
  refuse([](auto& o) { o.shortest = 1; });
  refuse([](auto& o) { o.longest = o.shortest; });
  refuse([](auto& o) { o.before = -1; });
  refuse([](auto& o) { o.after = 9; });
  refuse([](auto& o) { o.smoothing = 0; });
  refuse([](auto& o) { o.strength = 5; });
}

}  // namespace
}  // namespace tessera::test
