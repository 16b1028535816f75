#include "apps/bench/summary.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::bench {
namespace {

ResultRow row(const std::string& set, const std::string& recording, const std::string& codec,
              const std::string& point, double seconds, std::int64_t bytes, double stoi) {
  ResultRow result;
  result.set = set;
  result.recording = recording;
  result.codec = codec;
  result.point = point;
  result.seconds = seconds;
  result.file_bytes = bytes;
  result.payload_bytes = bytes - 10;
  result.scores["stoi"] = stoi;
  return result;
}

Results some_results() {
  Results results;
  results.metrics = {"stoi"};
  results.rows = {row("a", "1", "x", "high", 2, 4000, 0.9), row("a", "1", "x", "low", 2, 1000, 0.5),
                  row("b", "2", "x", "high", 6, 9000, 0.7), row("b", "2", "x", "low", 6, 3500, 0.7),
                  row("b", "2", "y", "only", 6, 750, 0.4)};
  return results;
}

TEST(Summary, PoolsRatesAndAveragesScores) {
  const Results results = some_results();
  const auto scopes = summarize(results);
  ASSERT_EQ(scopes.size(), 3u);
  EXPECT_EQ(scopes[0].name, "all recordings");
  EXPECT_EQ(scopes[1].name, "a");
  ASSERT_EQ(scopes[0].codecs.size(), 2u);
  const CodecSummary& x = scopes[0].codecs[0];
  ASSERT_EQ(x.points.size(), 2u);
  EXPECT_EQ(x.points[0].point, "low");  // in order of rate
  EXPECT_NEAR(x.points[0].kbps.mean, 4500 * 8 / 8.0 / 1000, 1e-12);
  EXPECT_NEAR(x.points[0].payload_kbps, 4480 * 8 / 8.0 / 1000, 1e-12);
  EXPECT_NEAR(x.points[1].kbps.mean, 13000 * 8 / 8.0 / 1000, 1e-12);
  EXPECT_NEAR(x.points[0].score("stoi")->mean, 0.6, 1e-12);
  EXPECT_EQ(x.points[0].score("stoi")->count, 2);
  EXPECT_EQ(x.points[0].score("estoi"), nullptr);
  EXPECT_EQ(scopes[0].codecs[1].style, 1);
  ASSERT_EQ(scopes[2].codecs.size(), 2u);
  EXPECT_EQ(scopes[2].codecs[1].style, 1);
  EXPECT_EQ(scopes[1].codecs.size(), 1u);
}

TEST(Summary, AConstantRateHasNoInterval) {
  Results results = some_results();
  results.rows = {row("a", "1", "x", "p", 2, 2000, 1), row("a", "2", "x", "p", 7, 7000, 1)};
  const Interval kbps = summarize(results)[0].codecs[0].points[0].kbps;
  EXPECT_NEAR(kbps.low, 8, 1e-12);
  EXPECT_NEAR(kbps.high, 8, 1e-12);
  EXPECT_EQ(kbps.count, 2);
}

TEST(Summary, LeavesOutWhatIsNoNumber) {
  Results results = some_results();
  results.rows[0].scores["stoi"] = NAN;  // 1, high
  results.rows[1].file_bytes = 0;        // 1, low
  results.rows[2].payload_bytes = -1;    // 2, high
  results.rows[4].seconds = NAN;
  const Scope scope = summarize(results)[0];
  const PointSummary& low = scope.codecs[0].points[0];
  EXPECT_EQ(low.failed, 1);
  EXPECT_EQ(low.rows.size(), 1u);
  EXPECT_EQ(scope.codecs[0].points[1].score("stoi")->count, 1);
  EXPECT_TRUE(std::isnan(scope.codecs[0].points[1].payload_kbps));
  const PointSummary& gone = scope.codecs[1].points[0];
  EXPECT_TRUE(std::isnan(gone.kbps.mean));
  EXPECT_EQ(gone.failed, 1);
  EXPECT_EQ(gone.score("stoi"), nullptr);
}

TEST(Summary, RowsWithLossStandApart) {
  Results results = some_results();
  ResultRow lossy = results.rows[0];
  lossy.loss_rate = 0.1;
  lossy.scores["stoi"] = 0.2;
  results.rows.push_back(lossy);
  EXPECT_NEAR(summarize(results)[0].codecs[0].points[1].score("stoi")->mean, 0.8, 1e-12);
  const auto curves = summarize_loss(results);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].codec, "x, high");
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_EQ(curves[0].points[0].loss_rate, 0);
  EXPECT_NEAR(curves[0].points[0].score("stoi")->mean, 0.8, 1e-12);
  EXPECT_NEAR(curves[0].points[1].score("stoi")->mean, 0.2, 1e-12);
}

TEST(Summary, CommonSamplesAreOfTheSameRecordings) {
  const Results results = some_results();
  const Scope scope = summarize(results)[0];
  const auto samples = common_samples({&scope.codecs[0], &scope.codecs[1]}, "stoi");
  ASSERT_EQ(samples.size(), 2u);
  ASSERT_EQ(samples[0].size(), 2u);
  EXPECT_EQ(samples[0][0].bytes, std::vector<double>{3500});  // y has recording 2 alone
  EXPECT_EQ(samples[1][0].scores, std::vector<double>{0.4});
  EXPECT_EQ(common_samples({&scope.codecs[0]}, "stoi")[0][1].scores, (std::vector<double>{0.9, 0.7}));
}

}  // namespace
}  // namespace tessera::bench
