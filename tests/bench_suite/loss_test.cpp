// The trace: reproducible, of the rate and the bursts asked for.
#include "apps/bench/loss.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tessera::bench {
namespace {

std::vector<bool> trace(const LossOptions& options, int packets) {
  auto loss = LossTrace::create(options).value();
  std::vector<bool> lost;
  for (int i = 0; i < packets; ++i) lost.push_back(loss.next());
  return lost;
}

struct Statistics {
  double rate = 0, mean_burst = 0, mean_gap = 0;
};

Statistics statistics(const std::vector<bool>& lost) {
  double losses = 0, bursts = 0, gaps = 0;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    losses += lost[i];
    bursts += lost[i] && (i == 0 || !lost[i - 1]);
    gaps += !lost[i] && (i == 0 || lost[i - 1]);
  }
  return {losses / static_cast<double>(lost.size()), losses / bursts,
          (static_cast<double>(lost.size()) - losses) / gaps};
}

TEST(LossTrace, HasTheRateAndTheBurstsAskedFor) {
  for (const auto& [rate, burst] : {std::pair(0.05, 1.0), {0.1, 1.5}, {0.1, 4.0}, {0.3, 2.0}, {0.5, 1.0}}) {
    SCOPED_TRACE(std::to_string(rate) + " in bursts of " + std::to_string(burst));
    const auto found = statistics(trace({.rate = rate, .mean_burst = burst, .seed = 7}, 200000));
    EXPECT_NEAR(found.rate, rate, 0.03 * rate);
    EXPECT_NEAR(found.mean_burst, burst, 0.03 * burst);
    EXPECT_NEAR(found.mean_gap, burst * (1 - rate) / rate, 0.05 * found.mean_gap);
  }
}

TEST(LossTrace, BurstsAreGeometric) {
  const auto lost = trace({.rate = 0.2, .mean_burst = 2.0, .seed = 3}, 200000);
  double both = 0,
         first = 0;  // a loss follows a loss with probability 1 - 1 / mean_burst, whatever was before
  for (std::size_t i = 2; i < lost.size(); ++i) {
    first += lost[i - 2] && lost[i - 1];
    both += lost[i - 2] && lost[i - 1] && lost[i];
  }
  EXPECT_NEAR(both / first, 0.5, 0.02);
}

TEST(LossTrace, StartsInItsAverage) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    lost += trace({.rate = 0.25, .mean_burst = 5.0, .seed = seed}, 1)[0] ? 1 : 0;
  }
  EXPECT_NEAR(lost / 4000.0, 0.25, 0.03);
}

TEST(LossTrace, DependsOnTheOptionsAlone) {
  const LossOptions options{.rate = 0.2, .mean_burst = 2, .seed = 11};
  EXPECT_EQ(trace(options, 500), trace(options, 500));
  EXPECT_NE(trace(options, 500), trace({.rate = 0.2, .mean_burst = 2, .seed = 12}, 500));
}

TEST(LossTrace, LosesNothingAtRateZero) {
  EXPECT_EQ(trace({.rate = 0, .mean_burst = 3, .seed = 5}, 1000), std::vector<bool>(1000, false));
}

TEST(LossTrace, RejectsWhatCannotBe) {
  for (const LossOptions& options :
       {LossOptions{.rate = -0.1}, LossOptions{.rate = 1},
        LossOptions{.rate = std::numeric_limits<double>::quiet_NaN()},
        LossOptions{.rate = 0.1, .mean_burst = 0.5}, LossOptions{.rate = 0.6, .mean_burst = 1}}) {
    const auto loss = LossTrace::create(options);
    ASSERT_FALSE(loss);
    EXPECT_EQ(loss.error().code, ErrorCode::usage);
  }
  EXPECT_TRUE(LossTrace::create({.rate = 0.6, .mean_burst = 2}));
}

}  // namespace
}  // namespace tessera::bench
