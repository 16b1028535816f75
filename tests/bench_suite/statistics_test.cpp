// Against numbers of SciPy 1.17 (PchipInterpolator, binomtest) and NumPy (percentile), and against what can
// be worked out by hand.
#include "apps/bench/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "apps/bench/bd_rate.h"
#include "core/error.h"
#include "core/random.h"

namespace tessera::bench {
namespace {

using metrics::Better;

TEST(Statistics, QuantileLiesBetweenNeighbours) {
  const std::vector<double> values{1, 2, 4, 8, 16};
  EXPECT_NEAR(quantile(values, 0.025), 1.1, 1e-12);
  EXPECT_NEAR(quantile(values, 0.3), 2.4, 1e-12);
  EXPECT_NEAR(quantile(values, 0.975), 15.2, 1e-12);
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 16);
  EXPECT_THROW(quantile({}, 0.5), UsageError);
  EXPECT_THROW(quantile(values, 1.5), UsageError);
}

TEST(Statistics, IntervalOfAMeanIsThatOfTheNormalDistributionForManyRecordings) {
  Random random(3);
  std::vector<double> values(400);
  double sum = 0, squares = 0;
  for (double& value : values) {
    value = 2 + 0.5 * random.normal();
    sum += value;
    squares += value * value;
  }
  const Interval interval = mean_interval(values);
  const double mean = sum / 400, deviation = std::sqrt(squares / 400 - mean * mean);
  EXPECT_EQ(interval.count, 400);
  EXPECT_NEAR(interval.mean, mean, 1e-12);
  EXPECT_NEAR(interval.high - mean, 1.96 * deviation / 20, 0.004);
  EXPECT_NEAR(mean - interval.low, 1.96 * deviation / 20, 0.004);
  BootstrapOptions wider;
  wider.confidence = 0.99;
  EXPECT_LT(mean_interval(values, wider).low, interval.low);
  EXPECT_EQ(mean_interval(values).low, interval.low);
}

TEST(Statistics, IntervalsOfFewValues) {
  // Of two values the mean of a resample is 0, 1/2 or 1, with 1/4, 1/2 and 1/4.
  const Interval two = mean_interval(std::vector<double>{0, 1});
  EXPECT_EQ(two.low, 0);
  EXPECT_EQ(two.mean, 0.5);
  EXPECT_EQ(two.high, 1);
  BootstrapOptions half;
  half.confidence = 0.4;
  EXPECT_EQ(mean_interval(std::vector<double>{0, 1}, half).low, 0.5);
  const Interval one = mean_interval(std::vector<double>{3});
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.high, 3);
  const Interval none = mean_interval({});
  EXPECT_TRUE(std::isnan(none.mean) && std::isnan(none.low));
  EXPECT_EQ(none.count, 0);
  EXPECT_THROW(mean_interval(std::vector<double>{1, NAN}), UsageError);
  BootstrapOptions wrong;
  wrong.resamples = 0;
  EXPECT_THROW(mean_interval(std::vector<double>{1}, wrong), UsageError);
}

TEST(Statistics, SignTestAgreesWithTheBinomialDistribution) {
  EXPECT_NEAR(sign_test(2, 10), 0.109375, 1e-14);
  EXPECT_NEAR(sign_test(8, 10), 0.109375, 1e-14);
  EXPECT_EQ(sign_test(5, 10), 1);
  EXPECT_NEAR(sign_test(60, 100), 0.05688793364098089, 1e-13);
  EXPECT_NEAR(sign_test(0, 3), 0.25, 1e-15);
  EXPECT_NEAR(sign_test(1100, 2000), 8.45708953550381e-06, 1e-16);
  EXPECT_THROW(sign_test(4, 3), UsageError);
}

TEST(Statistics, PairedComparisonSeesWhatUnpairedMeansHide) {
  // Recordings differ much more than the codecs do.
  std::vector<double> a, b;
  for (int i = 0; i < 30; ++i) {
    a.push_back(i % 7);
    b.push_back(i % 7 + (i % 10 == 0 ? -0.05 : 0.1));
  }
  b[4] = a[4];
  const PairedComparison result = compare_paired(a, b);
  EXPECT_EQ(result.higher, 26);
  EXPECT_EQ(result.lower, 3);
  EXPECT_EQ(result.equal, 1);
  EXPECT_NEAR(result.difference.mean, (26 * 0.1 - 3 * 0.05) / 30, 1e-12);
  EXPECT_GT(result.difference.low, 0.05);
  EXPECT_NEAR(result.p, sign_test(26, 29), 1e-15);
  EXPECT_LT(result.p, 1e-4);
  EXPECT_LT(mean_interval(a).high, 4);
  EXPECT_GT(mean_interval(a).high, mean_interval(b).low);
  EXPECT_EQ(compare_paired(a, a).p, 1);
  EXPECT_THROW(compare_paired(a, std::vector<double>{1}), UsageError);
}

TEST(BdRate, PchipAgreesWithScipy) {
  const Pchip curve({1.0, 2.0, 4.0, 4.5, 7.0}, {0.0, 1.0, 1.5, 4.0, 3.0});
  const std::array<std::array<double, 2>, 5> expected{{{1.3, 0.3727500000000001},
                                                       {2.9, 1.1997977574750829},
                                                       {4.2, 2.4218604651162803},
                                                       {4.9, 3.995904},
                                                       {6.5, 3.4879999999999995}}};
  for (const auto& [x, y] : expected) EXPECT_NEAR(curve(x), y, 1e-13) << x;
  EXPECT_NEAR(curve.integral(1.5, 6.0), 10.169419608250276, 1e-12);
  EXPECT_NEAR(curve.integral(1, 7), curve.integral(1, 4.2) + curve.integral(4.2, 7), 1e-12);
  EXPECT_NEAR(Pchip({0, 2}, {1, 5}).integral(0.5, 1.5), 3, 1e-15);
  EXPECT_THROW(Pchip({1, 1}, {1, 2}), UsageError);
  EXPECT_THROW(Pchip({1}, {1}), UsageError);
}

const std::vector<RatePoint> kAnchor{{1.5, 2.1}, {3.0, 2.9}, {6.0, 3.6}, {12.0, 4.1}};
const std::vector<RatePoint> kTested{{9.5, 4.2}, {1.0, 2.0}, {2.2, 2.95}, {4.5, 3.5}};

TEST(BdRate, AgreesWithScipy) {
  const BdRate rate = bd_rate(kAnchor, kTested, Better::higher);
  ASSERT_TRUE(rate.percent);
  EXPECT_NEAR(*rate.percent, -25.669227573947207, 1e-9);
  EXPECT_NEAR(*bd_rate(kTested, kAnchor, Better::higher).percent, 34.53378289521205, 1e-9);
  EXPECT_EQ(rate.from_score, 2.1);
  EXPECT_EQ(rate.to_score, 4.1);
  const std::vector<RatePoint> a{{1.5, 1.9}, {3.0, 1.2}, {6.0, 0.7}, {12.0, 0.45}};
  const std::vector<RatePoint> b{{1.2, 1.7}, {2.9, 1.15}, {5.5, 0.75}, {11, 0.5}};
  const BdRate lower = bd_rate(a, b, Better::lower);
  EXPECT_NEAR(lower.percent.value(), -10.221106683095037, 1e-9);
  EXPECT_EQ(lower.from_score, 0.5);
  EXPECT_EQ(lower.to_score, 1.7);
}

TEST(BdRate, OfACurveAtAFactorIsThatFactor) {
  std::vector<RatePoint> cheaper = kAnchor;
  for (RatePoint& point : cheaper) point.kbps *= 0.8;
  EXPECT_NEAR(bd_rate(kAnchor, cheaper, Better::higher).percent.value(), -20, 1e-10);
  EXPECT_NEAR(bd_rate(kAnchor, kAnchor, Better::higher).percent.value(), 0, 1e-12);
}

TEST(BdRate, SaysWhyThereIsNone) {
  std::vector<RatePoint> far = kAnchor;
  for (RatePoint& point : far) point.score += 3;
  BdRate rate = bd_rate(kAnchor, far, Better::higher);
  EXPECT_FALSE(rate.percent);
  EXPECT_EQ(rate.reason, "no score that both reach: 2.100 to 4.100 and 5.100 to 7.100");
  rate = bd_rate(std::span(kAnchor).first(2), kTested, Better::higher);
  EXPECT_FALSE(rate.percent);
  EXPECT_EQ(rate.reason, "the anchor has 2 points whose score rises with the rate, expected 3 or more");
  const std::vector<RatePoint> no_rate{{0, 1}, {1, 2}, {2, 3}};
  EXPECT_EQ(bd_rate(kAnchor, no_rate, Better::higher).reason, "a point without a rate or a score");
}

TEST(BdRate, LeavesOutPointsThatAnotherDominates) {
  std::vector<RatePoint> points = kTested;
  points.push_back({5, 3.4});  // costs more than 4.5 and scores less than 3.5
  const BdRate rate = bd_rate(kAnchor, points, Better::higher);
  EXPECT_EQ(rate.dropped, 1U);
  EXPECT_NEAR(rate.percent.value(), -25.669227573947207, 1e-9);
}

std::vector<PointSamples> samples_of(const std::vector<RatePoint>& points, double factor, double noise) {
  std::vector<PointSamples> all;
  Random random(5);
  for (const RatePoint& point : points) {
    PointSamples& samples = all.emplace_back();
    for (int i = 0; i < 40; ++i) {
      const double seconds = 2 + i % 5;
      samples.seconds.push_back(seconds);
      samples.bytes.push_back(point.kbps * factor * 125 * seconds);
      samples.scores.push_back(point.score + (i % 9 - 4) * 0.2 + noise * random.normal());
    }
  }
  return all;
}

TEST(BdRate, IntervalIsOfPairedRecordings) {
  const auto anchor = samples_of(kAnchor, 1, 0), cheaper = samples_of(kAnchor, 0.8, 0);
  BootstrapOptions few;
  few.resamples = 300;
  const BdRate exact = bd_rate(anchor, cheaper, Better::higher, few);
  EXPECT_NEAR(exact.percent.value(), -20, 1e-9);
  // Recordings differ, but they do so alike for both.
  EXPECT_NEAR(exact.low.value(), -20, 1e-9);
  EXPECT_NEAR(exact.high.value(), -20, 1e-9);
  const BdRate noisy = bd_rate(anchor, samples_of(kAnchor, 0.8, 0.1), Better::higher, few);
  EXPECT_LT(noisy.low.value(), noisy.percent.value() - 0.5);
  EXPECT_GT(noisy.high.value(), noisy.percent.value() + 0.5);
  EXPECT_EQ(bd_rate(anchor, samples_of(kAnchor, 0.8, 0.1), Better::higher, few).low, noisy.low);
}

TEST(BdRate, WithoutRecordingsInCommonIsAMistake) {
  auto anchor = samples_of(kAnchor, 1, 0);
  auto tested = anchor;
  tested[1].scores.pop_back();
  EXPECT_THROW(bd_rate(anchor, tested, Better::higher), UsageError);
  for (PointSamples& samples : anchor) {
    samples.bytes.resize(1), samples.seconds.resize(1), samples.scores.resize(1);
  }
  const BdRate one = bd_rate(anchor, anchor, Better::higher);
  EXPECT_NEAR(one.percent.value(), 0, 1e-12);
  EXPECT_FALSE(one.low);
  EXPECT_EQ(one.reason, "no interval from one recording");
}

}  // namespace
}  // namespace tessera::bench
