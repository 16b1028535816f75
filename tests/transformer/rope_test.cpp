// Rotations against libm in double, also at far positions, and the two layouts against each other.
#include "transformer/rope.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

TEST(Rope, RotationIsCosAndSinOfTheExactAngle) {
  const Rope rope(64, 10000, RopeLayout::half);
  ASSERT_EQ(rope.size(), 64);
  for (const std::int64_t position : {0LL, 1LL, 250LL, 65536LL, 3'000'017LL, 20'000'000'003LL}) {
    std::vector<float> rotation(64);
    rope.rotation(position, rotation.data());
    // Frequency and angle are rounded to double: that error grows with the position.
    const double tolerance = 7e-8 + static_cast<double>(position) * 6e-15;
    for (std::size_t i = 0; i < 32; ++i) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i) / 32);
      EXPECT_NEAR(rotation[i], std::cos(angle), tolerance) << position << " pair " << i;
      EXPECT_NEAR(rotation[32 + i], std::sin(angle), tolerance) << position << " pair " << i;
    }
  }
}

TEST(Rope, TurnsPairsByTheAngle) {
  const Rope rope(4, 100, RopeLayout::half);
  std::vector<float> rotation(4);
  rope.rotation(3, rotation.data());
  std::vector<float> x = {1, 0, 0, 1, 0, 2, 0, 0};  // two heads: pairs (0, 2) and (1, 3)
  rope.rotate(rotation.data(), x.data(), 2);
  const double first = 3, second = 3 * 0.1;
  const std::vector<double> expected = {
      std::cos(first),     -std::sin(second), std::sin(first), std::cos(second), 0, 2 * std::cos(second), 0,
      2 * std::sin(second)};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 2e-7) << i;
}

TEST(Rope, LayoutsDifferByAPermutationOnly) {
  constexpr int kDim = 16;
  const Rope half(kDim, 10000, RopeLayout::half), interleaved(kDim, 10000, RopeLayout::interleaved);
  std::vector<float> rotation(kDim), a(kDim), b(kDim);
  half.rotation(77, rotation.data());
  for (std::size_t i = 0; i < kDim / 2; ++i) {
    b[2 * i] = a[i] = 0.1f * static_cast<float>(i) - 0.3f;
    b[2 * i + 1] = a[i + kDim / 2] = 0.7f - 0.2f * static_cast<float>(i);
  }
  half.rotate(rotation.data(), a.data(), 1);
  interleaved.rotate(rotation.data(), b.data(), 1);
  for (std::size_t i = 0; i < kDim / 2; ++i) {
    EXPECT_EQ(b[2 * i], a[i]);
    EXPECT_EQ(b[2 * i + 1], a[i + kDim / 2]);
  }
}

TEST(Rope, RefusesImpossibleOptions) {
  EXPECT_THROW(Rope(15, 10000, RopeLayout::half), UsageError);
  EXPECT_THROW(Rope(0, 10000, RopeLayout::half), UsageError);
  EXPECT_THROW(Rope(16, 0, RopeLayout::half), UsageError);
  EXPECT_THROW(Rope(16, std::nan(""), RopeLayout::half), UsageError);
}

}  // namespace
}  // namespace tessera
