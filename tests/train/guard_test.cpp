#include "train/guard.h"

#include <gtest/gtest.h>

#include <limits>

namespace tessera::train {
namespace {

using Terms = std::vector<std::pair<std::string, double>>;

GuardOptions quick() {
  GuardOptions options;
  options.factor = 10;
  options.patience = 2;
  options.settle = 5;
  return options;
}

LossGuard settled() {
  LossGuard guard(quick());
  for (int step = 0; step < 5; ++step)
    EXPECT_TRUE(guard.check(step, Terms{{"mel", 2.0}, {"game", 0.0}}, "b"));
  return guard;
}

TEST(LossGuard, NamesWhatIsNotFiniteAtOnce) {
  LossGuard guard(quick());
  const auto bad = guard.check(812, Terms{{"mel", 1.0}, {"game", std::numeric_limits<double>::quiet_NaN()}},
                               "a.wav at 3.20 s");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "step 812: loss \"game\" is nan; batch: a.wav at 3.20 s");
  EXPECT_FALSE(guard.check(813, Terms{{"mel", std::numeric_limits<double>::infinity()}}, "b"));
}

TEST(LossGuard, BearsWithOneSpikeButNotWithTwo) {
  LossGuard guard = settled();
  EXPECT_TRUE(guard.check(6, Terms{{"mel", 25.0}}, "b"));
  EXPECT_TRUE(guard.check(7, Terms{{"mel", 2.0}}, "b"));
  EXPECT_TRUE(guard.check(8, Terms{{"mel", -25.0}}, "b"));
  const auto bad = guard.check(9, Terms{{"mel", 30.0}}, "x.wav");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message,
            "step 9: loss \"mel\" is 30, above 10 times its running mean 2 for 2 steps; batch: x.wav");
}

TEST(LossGuard, LetsATermSettleWhenItBegins) {
  LossGuard guard = settled();
  for (int step = 6; step < 10; ++step) EXPECT_TRUE(guard.check(step, Terms{{"game", 1e6}}, "b"));
}

TEST(LossGuard, GoesOnFromASavedState) {
  LossGuard guard = settled(), again(quick());
  EXPECT_TRUE(guard.check(6, Terms{{"mel", 25.0}}, "b"));
  ASSERT_TRUE(again.restore(guard.save()));
  EXPECT_FALSE(again.check(7, Terms{{"mel", 25.0}}, "b"));
  const NamedTensors wrong = {{"mel", Tensor::zeros({3})}};
  EXPECT_EQ(again.restore(wrong).error().message,
            "state of the loss guard: expected \"mel\" as f64 [3], got f32 [3]");
}

}  // namespace
}  // namespace tessera::train
