#include "core/gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/contracts.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

const std::vector<int> kBands = {3, 5, 11};
constexpr int kRows = 7, kChannels = 19, kAll = 22;

TEST(Gain, SplitsAndJoins) {
  std::vector<float> x = random_floats(kRows * kChannels, 3);
  for (int c = 0; c < kChannels; ++c) x[static_cast<std::size_t>(3 * kChannels + c)] *= 0.1f;
  std::vector<float> y(kRows * kAll), back(x.size());
  split_gain(x.data(), y.data(), kRows, kBands);
  for (int r = 0; r < kRows; ++r) {
    const float* row = y.data() + r * kAll;
    int first = 0;
    for (int b = 0; b < 3; ++b) {
      const int width = kBands[static_cast<std::size_t>(b)];
      double sum = 0;
      for (int c = 0; c < width; ++c) {
        sum += std::pow(x[static_cast<std::size_t>(r * kChannels + first + c)], 2.0);
      }
      const double gain = std::sqrt(sum / width + 1e-6);
      EXPECT_NEAR(row[kChannels + b], std::log(gain), 1e-6);
      for (int c = 0; c < width; ++c) {
        EXPECT_NEAR(row[first + c], x[static_cast<std::size_t>(r * kChannels + first + c)] / gain, 2e-6);
      }
      first += width;
    }
  }
  join_gain(y.data(), back.data(), kRows, kBands);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 4e-4 * std::abs(x[i]) + 1e-6);
}

TEST(Gain, JoiningKeepsTheEnergyOfABand) {
  std::vector<float> x = random_floats(kAll, 5), y(kChannels);
  for (int c = 0; c < 3; ++c) x[static_cast<std::size_t>(c)] *= 40;  // a shape may have any size
  join_gain(x.data(), y.data(), 1, kBands);
  double energy = 0;
  for (int c = 0; c < 3; ++c) energy += std::pow(y[static_cast<std::size_t>(c)], 2.0);
  EXPECT_NEAR(std::sqrt(energy / 3), std::exp(x[kChannels]), 1e-3);
}

TEST(Gain, SilenceHasTheFloorAndNoShape) {
  const std::vector<float> x(kChannels, 0.0f);
  std::vector<float> y(kAll), back(kChannels, 1.0f);
  split_gain(x.data(), y.data(), 1, kBands);
  for (int b = 0; b < 3; ++b) EXPECT_NEAR(y[static_cast<std::size_t>(kChannels + b)], std::log(1e-3), 1e-5);
  join_gain(y.data(), back.data(), 1, kBands);
  EXPECT_EQ(back, x);
}

TEST(Gain, WildGainsStayFinite) {
  const std::vector<float> x{1, -1, 1e9f, 1, 1, -1e9f};
  std::vector<float> y(4);
  join_gain(x.data(), y.data(), 2, std::vector<int>{2});
  EXPECT_NEAR(y[0], std::exp(16.0), 1e3);
  EXPECT_NEAR(y[2], std::exp(-16.0), 1e-10);
}

TEST(Gain, LayersKeepTheContracts) {
  expect_contracts(SplitGain(kBands), 40);
  expect_contracts(JoinGain(kBands), 40);
}

}  // namespace
}  // namespace tessera::test
