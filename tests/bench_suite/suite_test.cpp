#include "apps/bench/suite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "tests/bench_suite/runner_support.h"
#include "tests/bench_suite/stand_ins.h"

namespace tessera::bench {
namespace {

metrics::MetricSuite load_metrics(std::vector<std::string> names = {}, const std::string& models = {}) {
  metrics::SuiteOptions options;
  options.metrics = std::move(names);
  options.model_folder = models;
  return metrics::MetricSuite::load(options).value();
}

RunOutcome run_with(const BenchFolder& folder, const std::vector<const CodecRunner*>& runners,
                    const metrics::MetricSuite& suite, RunOptions options = {},
                    const std::string& models = {}) {
  options.folder = folder / "out";
  const auto versions = metric_versions(suite, models).value();
  return run_suite(folder.recordings(), series_of(runners), suite, versions, options).value();
}

std::map<std::string, ResultRow> by_codec(const RunOutcome& outcome) {
  std::map<std::string, ResultRow> rows;
  for (const ResultRow& row : outcome.rows) rows[row.codec] = row;
  return rows;
}

void expect_perfect(const ResultRow& row) {
  const std::map<std::string, double> best{{"stoi", 1},
                                           {"estoi", 1},
                                           {"si_sdr", 100},
                                           {"snr", 100},
                                           {"lsd", 0},
                                           {"mel_distance", 0},
                                           {"visqol_speech_exponential", 5}};
  for (const auto& [name, value] : best) EXPECT_NEAR(row.scores.at(name), value, 1e-6) << row.codec << name;
  EXPECT_EQ(row.error, "");
}

TEST(BenchSuite, WhatChangesNothingScoresPerfectlyAndDelayCostsNothing) {
  const BenchFolder folder;
  folder.record("speech/a.wav", 2.2);
  const StandIn same("same", unchanged), ms1("ms1", delayed(16)), ms37("ms37", delayed(37 * 16 + 5)),
      ms100("ms100", delayed(1600)), cut("cut", [](std::span<const float> pcm, const OperatingPoint&point) {
        auto late = delayed(800)(pcm, point);
        late->resize(pcm.size());  // as long as what went in
        return late;
      });
  const auto rows = by_codec(run_with(folder, {&same, &ms1, &ms37, &ms100, &cut}, load_metrics()));
  ASSERT_EQ(rows.size(), 5U);
  for (const auto& [name, row] : rows) expect_perfect(row);
  EXPECT_EQ(rows.at("same").delay_samples, 0);
  EXPECT_EQ(rows.at("ms1").delay_samples, 16);
  EXPECT_EQ(rows.at("ms37").delay_samples, 597);
  EXPECT_EQ(rows.at("ms100").delay_samples, 1600);
  EXPECT_EQ(rows.at("cut").delay_samples, 800);
  for (const char* name : {"ms1", "ms37", "ms100"}) {
    EXPECT_EQ(rows.at(name).scores, rows.at("same").scores) << name;
  }
  EXPECT_EQ(rows.at("same").set, "speech");
  EXPECT_EQ(rows.at("same").recording, "speech/a.wav");
  EXPECT_NEAR(rows.at("same").seconds, 2.2, 1e-9);
  EXPECT_NEAR(rows.at("same").kbps(), 16, 1e-9);
}

TEST(BenchSuite, EveryMetricWithItsModel) {
  const std::string models = std::string(TESSERA_SHARED_DIR) + "/metrics";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << "no " << models;
  const BenchFolder folder;
  folder.record("speech/a.wav", 2.2);
  const StandIn same("same", unchanged), late("late", delayed(799));
  const metrics::MetricSuite suite = load_metrics({}, models);
  ASSERT_EQ(suite.available().size(), metrics::all_metrics().size() - 1);  // phone_error: see below
  const auto rows = by_codec(run_with(folder, {&same, &late}, suite, {}, models));
  EXPECT_EQ(rows.at("same").scores.size(), metrics::all_metrics().size() - 1);
  EXPECT_EQ(rows.at("same").scores, rows.at("late").scores);
  expect_perfect(rows.at("same"));
  EXPECT_GT(rows.at("same").scores.at("visqol_speech"), 4);
}

TEST(BenchSuite, PolarityLevelAndLostSoundAreSeen) {
  const BenchFolder folder;
  // A voice: the triangle waves of the other tests, turned over, are themselves half a period later.
  folder.record("a.wav", speech_like(2, 16000));
  const StandIn same("same", unchanged), inverted("inverted", scaled_by(-1)),
      halved("halved", scaled_by(0.5F)), cut("cut", cut_to(0.8));
  const auto rows = by_codec(run_with(folder, {&same, &inverted, &halved, &cut}, load_metrics()));
  EXPECT_LT(rows.at("inverted").scores.at("snr"), 3);
  EXPECT_NEAR(rows.at("halved").scores.at("snr"), 6.0206, 1e-3);
  EXPECT_EQ(rows.at("halved").delay_samples, 0);
  EXPECT_LT(rows.at("cut").scores.at("snr"), 15);
  EXPECT_LT(rows.at("cut").scores.at("estoi"), 0.95);
  EXPECT_GT(rows.at("cut").scores.at("mel_distance"), 0.1);
  EXPECT_EQ(rows.at("same").set, "data");
}

TEST(BenchSuite, SecondRunRunsNoCodec) {
  const BenchFolder folder;
  folder.record("one/a.wav", 1.5, 1);
  folder.record("two/b.wav", 1, 2);
  StandIn codec("noisy", noisy, {"loud", "soft"});
  const metrics::MetricSuite suite = load_metrics({"snr", "lsd"});
  const RunOutcome first = run_with(folder, {&codec}, suite), second = run_with(folder, {&codec}, suite);
  EXPECT_EQ(codec.runs, 4);
  EXPECT_EQ(first.computed, 4);
  EXPECT_EQ(second.computed, 0);
  EXPECT_EQ(second.from_cache, 4);
  ASSERT_EQ(second.rows.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(second.rows[i].scores, first.rows[i].scores);
    EXPECT_EQ(second.rows[i].file_bytes, first.rows[i].file_bytes);
    EXPECT_EQ(second.rows[i].seconds, first.rows[i].seconds);
    EXPECT_EQ(second.rows[i].point, i % 2 == 0 ? "loud" : "soft");
  }
  EXPECT_EQ(second.data_hash, first.data_hash);

  // Fewer metrics: known. One more: measured anew, and the others are still known.
  run_with(folder, {&codec}, load_metrics({"lsd"}));
  EXPECT_EQ(codec.runs, 4);
  EXPECT_EQ(run_with(folder, {&codec}, load_metrics({"si_sdr"})).computed, 4);
  EXPECT_EQ(codec.runs, 8);
  EXPECT_EQ(run_with(folder, {&codec}, load_metrics({"snr", "lsd", "si_sdr"})).rows[3].scores.size(), 3U);
  EXPECT_EQ(codec.runs, 8);

  // Another version of the codec, another recording under an old name: measured.
  codec.version_text = "2";
  run_with(folder, {&codec}, suite);
  EXPECT_EQ(codec.runs, 12);
  folder.record("two/b.wav", 1, 3);
  const RunOutcome changed = run_with(folder, {&codec}, suite);
  EXPECT_EQ(codec.runs, 14);
  EXPECT_NE(changed.data_hash, first.data_hash);
}

TEST(BenchSuite, DamagedCacheFilesAreMadeAgain) {
  const BenchFolder folder;
  folder.record("a.wav", 1);
  const StandIn codec("noisy", noisy, {"loud", "soft", "softer"});
  const metrics::MetricSuite suite = load_metrics({"snr"});
  const RunOutcome first = run_with(folder, {&codec}, suite);
  int i = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out/cache")) {
    if (i == 0) std::filesystem::resize_file(entry.path(), 20);
    if (i == 1) std::ofstream(entry.path()) << R"({"key": "another", "value": {}})";
    ++i;
  }
  EXPECT_EQ(i, 3);
  const RunOutcome second = run_with(folder, {&codec}, suite);
  EXPECT_EQ(codec.runs, 5);
  EXPECT_EQ(second.from_cache, 1);
  for (std::size_t row = 0; row < 3; ++row) EXPECT_EQ(second.rows[row].scores, first.rows[row].scores);
}

TEST(BenchSuite, GoesOnAfterAStop) {
  const BenchFolder folder;
  for (int i = 0; i < 3; ++i) {
    folder.record("s/" + std::to_string(i) + ".wav", 1, static_cast<std::uint64_t>(i + 1));
  }
  const StandIn codec("noisy", noisy, {"loud", "soft"});
  const metrics::MetricSuite suite = load_metrics({"snr"});
  RunOptions options;
  options.threads = 1;
  options.stop = [&codec] { return codec.runs >= 3; };
  const RunOutcome stopped = run_with(folder, {&codec}, suite, options);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.rows.size(), 3U);
  EXPECT_EQ(codec.runs, 3);
  const RunOutcome rest = run_with(folder, {&codec}, suite);
  EXPECT_FALSE(rest.stopped);
  EXPECT_EQ(codec.runs, 6);
  EXPECT_EQ(rest.from_cache, 3);
  EXPECT_EQ(rest.rows.size(), 6U);
}

TEST(BenchSuite, AnyNumberOfThreadsGivesTheSame) {
  const StandIn codec("noisy", noisy, {"loud", "soft"}), late("late", delayed(33));
  RunOutcome outcomes[2];
  const metrics::MetricSuite suite = load_metrics();
  for (int i = 0; i < 2; ++i) {
    const BenchFolder folder;
    for (int k = 0; k < 4; ++k) {
      folder.record("s/" + std::to_string(k) + ".wav", 1 + 0.2 * k, static_cast<std::uint64_t>(k + 1));
    }
    RunOptions options;
    options.threads = i + 1;
    double last = 0;
    options.progress = [&last](double done_s, double total_s) {
      EXPECT_GT(done_s, last);
      EXPECT_LE(done_s, total_s + 1e-6);
      last = done_s;
    };
    outcomes[i] = run_with(folder, {&codec, &late}, suite, options);
    EXPECT_NEAR(last, 3 * (1 + 1.2 + 1.4 + 1.6), 1e-6);
  }
  ASSERT_EQ(outcomes[0].rows.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    const ResultRow &a = outcomes[0].rows[i], &b = outcomes[1].rows[i];
    EXPECT_EQ(a.recording + a.codec + a.point, b.recording + b.codec + b.point);
    EXPECT_EQ(a.scores, b.scores);
    EXPECT_EQ(a.delay_samples, b.delay_samples);
    EXPECT_EQ(a.file_bytes, b.file_bytes);
    EXPECT_EQ(a.error, b.error);
  }
}

TEST(BenchSuite, WhatFailsCostsItsRowOnly) {
  const BenchFolder folder;
  folder.record("a.wav", 1);
  folder.record("b_short.wav", 0.25);
  std::ofstream(folder / "data/c_no_sound.wav") << "not sound";
  const StandIn good("good", unchanged);
  const StandIn fails("fails", [](std::span<const float> pcm, const OperatingPoint& point) {
    if (pcm.size() > 8000) return Result<std::vector<float>>(Error{ErrorCode::io, "fails: no disk"});
    return unchanged(pcm, point);
  });
  const StandIn throws(
      "throws",
      [](std::span<const float> /*pcm*/, const OperatingPoint& /*point*/) -> Result<std::vector<float>> {
        throw std::runtime_error("oh");
      });
  const StandIn empty("empty", cut_to(0)), not_a_number("nan", scaled_by(NAN));
  StandIn other_rate("rate", unchanged);
  other_rate.rate_hz = 8000;
  const metrics::MetricSuite suite = load_metrics({"snr", "stoi"});
  const RunOutcome outcome =
      run_with(folder, {&good, &fails, &throws, &empty, &not_a_number, &other_rate}, suite);
  ASSERT_EQ(outcome.rows.size(), 18U);
  const auto row = [&](std::size_t recording, std::size_t codec) {
    return outcome.rows[recording * 6 + codec];
  };
  EXPECT_EQ(row(0, 0).error, "");
  EXPECT_EQ(row(0, 1).error, "fails: no disk");
  EXPECT_EQ(row(0, 2).error, "throws: oh");
  EXPECT_NE(row(0, 3).error.find("snr: "), std::string::npos);
  EXPECT_TRUE(row(0, 3).scores.empty());
  EXPECT_GT(row(0, 3).file_bytes, 0);
  EXPECT_NE(row(0, 4).error.find("snr: "), std::string::npos);
  EXPECT_EQ(row(0, 5).error, "rate: expected sound at 16000 Hz as it went in, got 8000");
  // Too short for STOI: the other metric is there.
  EXPECT_EQ(row(1, 0).error.find("stoi: "), 0U);
  EXPECT_EQ(row(1, 0).scores.at("snr"), 100);
  for (std::size_t codec = 0; codec < 6; ++codec) {
    EXPECT_NE(row(2, codec).error.find("c_no_sound.wav"), std::string::npos);
  }
  EXPECT_EQ(outcome.failed, 17);
  // What a metric cannot judge is known by now, what a codec could not do is tried again.
  const int before = fails.runs, good_before = good.runs;
  run_with(folder, {&good, &fails}, suite);
  EXPECT_EQ(good.runs, good_before);
  EXPECT_EQ(fails.runs, before + 1);
}

TEST(BenchSuite, PhoneErrorIsOfRecordingsWithAnAlignment) {
  const BenchFolder folder;
  folder.record("a.wav", 1.5, 1);
  folder.record("b.wav", 1.5, 2);
  const StandIn codec("noisy", noisy, {"loud"});
  const auto run = [&](const std::string& alignments) {
    metrics::SuiteOptions options;
    options.metrics = {"phone_error", "snr"};
    const std::string path = folder / "align.tsv";
    std::ofstream(path) << alignments;
    options.alignments = metrics::PhoneAlignments::read(std::span(&path, 1)).value();
    return run_with(folder, {&codec}, metrics::MetricSuite::load(options).value());
  };
  const RunOutcome first = run("a\t0:<sil> 10:AH 60:T 140:</s>\n");
  ASSERT_EQ(first.rows.size(), 2U);
  EXPECT_EQ(first.failed, 0);
  EXPECT_EQ(first.rows[0].scores.size(), 2U);
  EXPECT_EQ(first.rows[1].scores.size(), 1U);
  EXPECT_EQ(first.rows[1].scores.count("phone_error"), 0U);
  // An alignment counts for its own recording.
  const RunOutcome both = run("b\t0:IH 140:</s>\na\t0:<sil> 10:AH 60:T 140:</s>\n");
  EXPECT_EQ(both.from_cache, 1);
  EXPECT_EQ(both.computed, 1);
  EXPECT_EQ(both.rows[0].scores, first.rows[0].scores);
  EXPECT_EQ(both.rows[1].scores.size(), 2U);
  const RunOutcome changed = run("b\t0:IH 140:</s>\na\t0:<sil> 10:AH 61:T 140:</s>\n");
  EXPECT_EQ(changed.from_cache, 1);
  EXPECT_EQ(changed.rows[1].scores, both.rows[1].scores);
  // What is known of b does not show without its alignment.
  const RunOutcome last = run("a\t0:<sil> 10:AH 61:T 140:</s>\n");
  EXPECT_EQ(last.computed, 0);
  EXPECT_EQ(last.failed, 0);
  EXPECT_EQ(last.rows[1].scores.size(), 1U);
}

TEST(BenchSuite, LossesAreSeriesOfTheirOwn) {
  const BenchFolder folder;
  folder.record("a.wav", 1);
  const StandIn codec("codec", unchanged);
  std::vector<Series> series = series_of({&codec});
  series.push_back(series[0]);
  series[1].loss.rate = 0.1;
  const metrics::MetricSuite suite = load_metrics({"snr"});
  const auto versions = metric_versions(suite, "").value();
  RunOptions options;
  options.folder = folder / "out";
  const auto outcome = run_suite(folder.recordings(), series, suite, versions, options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->rows[0].scores.at("snr"), 100);
  EXPECT_EQ(outcome->rows[1].loss_rate, 0.1);
  EXPECT_LT(outcome->rows[1].scores.at("snr"), 20);
  series[1].loss.seed = 7;  // another loss: not from the cache
  EXPECT_EQ(run_suite(folder.recordings(), series, suite, versions, options)->computed, 1);
  series[1].loss = {};
  EXPECT_EQ(run_suite(folder.recordings(), series, suite, versions, options).error().code, ErrorCode::usage);
  EXPECT_EQ(run_suite({}, series, suite, versions, options).error().code, ErrorCode::usage);
}

TEST(BenchSuite, ExamplesAreAlignedAndKept) {
  const BenchFolder folder;
  folder.record("a.wav", 1, 1);
  folder.record("b.wav", 1.2, 2);
  const StandIn late("late", delayed(100), {"only", "a/b c"});
  const metrics::MetricSuite suite = load_metrics({"snr"});
  run_with(folder, {&late}, suite);
  EXPECT_EQ(late.runs, 4);
  RunOptions options;
  options.examples = 1;
  const RunOutcome outcome = run_with(folder, {&late}, suite, options);
  EXPECT_EQ(late.runs, 6);  // to get the sound
  EXPECT_EQ(outcome.computed, 0);
  ASSERT_EQ(outcome.examples.size(), 3U);
  EXPECT_EQ(outcome.examples[0].codec, "");
  EXPECT_EQ(outcome.examples[2].point, "a/b c");
  const Sound original = read_recording(folder / ("out/" + outcome.examples[0].path)).value();
  const Sound decoded = read_recording(folder / ("out/" + outcome.examples[2].path)).value();
  EXPECT_EQ(original.pcm, read_recording(folder / ("data/" + outcome.examples[0].recording))->pcm);
  EXPECT_EQ(decoded.pcm, original.pcm);
  run_with(folder, {&late}, suite, options);
  EXPECT_EQ(late.runs, 6);
}

TEST(BenchSuite, ACacheThatCannotBeWrittenEndsTheRun) {
  const BenchFolder folder;
  folder.record("a.wav", 1);
  std::ofstream(folder / "out") << "a file";
  const StandIn codec("same", unchanged);
  const metrics::MetricSuite suite = load_metrics({"snr"});
  RunOptions options;
  options.folder = folder / "out";
  const auto outcome =
      run_suite(folder.recordings(), series_of({&codec}), suite, metric_versions(suite, "").value(), options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::io);
}

TEST(BenchRecordings, SetsAndLimits) {
  const BenchFolder folder;
  for (int i = 0; i < 5; ++i) {
    folder.record("x/deep/" + std::to_string(i) + ".wav", 0.1);
    folder.record("y/" + std::to_string(i) + ".wav", 0.1);
  }
  DataOptions options;
  options.folders = {folder / "data"};
  options.limit = 2;
  const auto found = find_recordings(options).value();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].set, "x");
  EXPECT_EQ(found[0].name, "x/deep/2.wav");
  EXPECT_EQ(found[1].name, "x/deep/4.wav");
  EXPECT_EQ(found[3].set, "y");
  options.folders = {folder / "data/y/"};
  options.limit = 0;
  const auto flat = find_recordings(options).value();
  ASSERT_EQ(flat.size(), 5U);
  EXPECT_EQ(flat[0].set, "y");
  EXPECT_EQ(flat[0].name, "0.wav");
  options.folders.push_back(folder / "data/y");
  EXPECT_EQ(find_recordings(options).error().code, ErrorCode::usage);
  options.folders = {folder / "nowhere"};
  EXPECT_EQ(find_recordings(options).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tessera::bench
