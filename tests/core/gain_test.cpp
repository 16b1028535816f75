#include "core/gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/contracts.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

TEST(Gain, SplitsAndJoins) {
  constexpr int kRows = 7, kChannels = 19;
  std::vector<float> x = random_floats(kRows * kChannels, 3);
  for (int c = 0; c < kChannels; ++c) x[static_cast<std::size_t>(3 * kChannels + c)] *= 1e-2f;
  std::vector<float> y(kRows * (kChannels + 1)), back(x.size());
  split_gain(x.data(), y.data(), kRows, kChannels);
  for (int r = 0; r < kRows; ++r) {
    double sum = 0;
    for (int c = 0; c < kChannels; ++c) sum += std::pow(x[static_cast<std::size_t>(r * kChannels + c)], 2.0);
    const double gain = std::sqrt(sum / kChannels + 1e-6);
    const float* row = y.data() + r * (kChannels + 1);
    EXPECT_NEAR(row[kChannels], std::log(gain), 1e-6);
    for (int c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(row[c], x[static_cast<std::size_t>(r * kChannels + c)] / gain, 1e-6);
    }
  }
  join_gain(y.data(), back.data(), kRows, kChannels);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-6);
}

TEST(Gain, SilenceHasTheFloorAndNoShape) {
  const std::vector<float> x(5, 0.0f);
  std::vector<float> y(6), back(5, 1.0f);
  split_gain(x.data(), y.data(), 1, 5);
  EXPECT_NEAR(y[5], std::log(1e-3), 1e-5);
  join_gain(y.data(), back.data(), 1, 5);
  EXPECT_EQ(back, x);
}

TEST(Gain, WildGainsStayFinite) {
  const std::vector<float> x{1, -2, 1e9f, 3, 4, -1e9f};
  std::vector<float> y(4);
  join_gain(x.data(), y.data(), 2, 2);
  EXPECT_NEAR(y[0], std::exp(16.0), 1e2);
  EXPECT_NEAR(y[2], 3 * std::exp(-16.0), 1e-12);
}

TEST(Gain, LayersKeepTheContracts) {
  expect_contracts(SplitGain(20), 40);
  expect_contracts(JoinGain(20), 40);
}

}  // namespace
}  // namespace tessera::test
