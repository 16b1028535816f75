#include "metrics/alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/metrics/support.h"

namespace tessera::metrics {
namespace {

using test::late;
using test::scaled;

TEST(Delay, IsFoundWhateverItsSign) {
  const std::vector<float> sound = test::test_sound(40000);
  for (const std::size_t delay : {0u, 1u, 16u, 333u, 1600u}) {
    const Delay behind = find_delay(sound, late(sound, delay), 1600);
    EXPECT_EQ(behind.samples, static_cast<std::int64_t>(delay));
    EXPECT_NEAR(behind.correlation, 1, 1e-6);
    EXPECT_EQ(find_delay(late(sound, delay), sound, 1600).samples, -static_cast<std::int64_t>(delay));
  }
}

TEST(Delay, IsTheSameAsThatOfTheDefinition) {
  const std::vector<float> a = test::random_floats(700, 1), b = test::random_floats(650, 2);
  constexpr std::int64_t kMost = 40;
  std::int64_t best = 0;
  double highest = -1e30, squares_a = 0, squares_b = 0;
  for (std::int64_t lag = -kMost; lag <= kMost; ++lag) {
    double sum = 0;
    for (std::int64_t n = 0; n < 700; ++n) {
      if (n + lag < 0 || n + lag >= 650) continue;
      sum += static_cast<double>(a[static_cast<std::size_t>(n)]) * b[static_cast<std::size_t>(n + lag)];
    }
    if (sum > highest) {
      highest = sum;
      best = lag;
    }
  }
  for (const float x : a) squares_a += static_cast<double>(x) * x;
  for (const float x : b) squares_b += static_cast<double>(x) * x;
  const Delay delay = find_delay(a, b, kMost);
  EXPECT_EQ(delay.samples, best);
  EXPECT_NEAR(delay.correlation, highest / std::sqrt(squares_a * squares_b), 1e-12);
}

TEST(Delay, AddsUpOverBlocks) {
  // Several blocks of the transform (16384), with the loud part in a late one.
  std::vector<float> sound = test::random_floats(100000, 3, 0.001f);
  const std::vector<float> loud = test::random_floats(5000, 4);
  std::copy(loud.begin(), loud.end(), sound.begin() + 65000);
  EXPECT_EQ(find_delay(sound, late(sound, 777), 1000).samples, 777);
}

TEST(Delay, KeepsWithinItsLimitAndItsSign) {
  const std::vector<float> sound = test::test_sound(8000);
  EXPECT_LE(std::abs(find_delay(sound, late(sound, 500), 100).samples), 100);
  EXPECT_LT(find_delay(sound, scaled(sound, -1), 0).correlation, -0.999);
  EXPECT_EQ(find_delay(std::vector<float>(100), sound, 10).samples, 0);
  EXPECT_EQ(find_delay({}, sound, 10).samples, 0);
  EXPECT_EQ(find_delay({}, {}, 10).samples, 0);
  EXPECT_THROW((void)find_delay(sound, sound, -1), UsageError);
}

TEST(Alignment, UndoesADelay) {
  const std::vector<float> sound = test::test_sound(1000);
  const AlignedPair behind = align(sound, late(sound, 30), 30);
  EXPECT_EQ(behind.reference, sound);
  EXPECT_EQ(behind.degraded, sound);
  // Cut to its old length, the late sound lacks its end through no fault of its own.
  std::vector<float> cut = late(sound, 30);
  cut.resize(1000);
  const AlignedPair shorter = align(sound, cut, 30);
  EXPECT_EQ(shorter.reference, std::vector<float>(sound.begin(), sound.end() - 30));
  EXPECT_EQ(shorter.degraded, shorter.reference);
  const AlignedPair early = align(late(sound, 30), sound, -30);
  EXPECT_EQ(early.reference, sound);
  EXPECT_EQ(early.degraded, sound);
}

TEST(Alignment, ADroppedEndIsSilence) {
  const std::vector<float> sound = test::test_sound(1000);
  const std::vector<float> part(sound.begin(), sound.begin() + 900);
  const AlignedPair pair = align(sound, part, 0);
  ASSERT_EQ(pair.reference, sound);
  ASSERT_EQ(pair.degraded.size(), 1000u);
  EXPECT_TRUE(std::all_of(pair.degraded.begin() + 900, pair.degraded.end(), [](float x) { return x == 0; }));
  EXPECT_EQ(align(part, sound, 0).degraded, part);
}

TEST(Alignment, NothingIsLeftOfSoundsApart) {
  const std::vector<float> sound = test::test_sound(100);
  for (const std::int64_t delay :
       {std::int64_t{100}, std::int64_t{-100}, std::int64_t{5000}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_TRUE(align(sound, sound, delay).reference.empty()) << delay;
  }
  EXPECT_TRUE(align(sound, {}, 0).reference.empty());
}

}  // namespace
}  // namespace tessera::metrics
