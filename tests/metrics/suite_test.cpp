#include "metrics/metric_suite.h"

#include <algorithm>
#include <limits>
#include <set>
#include <thread>

#include "core/cpu.h"
#include "tests/metrics/support.h"

namespace tessera::metrics {
namespace {

using test::bursts;
using test::late;
using test::scaled;

constexpr int kRate = 16000;
const std::vector<std::string> kQuick = {
    "visqol_speech_exponential", "stoi", "estoi", "si_sdr", "snr", "lsd", "mel_distance"};

MetricSuite suite(const std::vector<std::string>& metrics) {
  SuiteOptions options;
  options.metrics = metrics;
  options.model_folder = test::shared("metrics");
  return MetricSuite::load(options).value();
}

double value_of(const Report& report, const std::string& name) {
  const auto found = std::find_if(report.scores.begin(), report.scores.end(),
                                  [&](const Score& score) { return score.name == name; });
  return found == report.scores.end() ? std::numeric_limits<double>::quiet_NaN() : found->value;
}

TEST(Suite, NamesAreDistinctAndFound) {
  std::set<std::string_view> names;
  for (const MetricInfo& metric : all_metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second);
    EXPECT_EQ(find_metric(metric.name), &metric);
    EXPECT_FALSE(metric.tells.empty());
  }
  EXPECT_EQ(find_metric("loudness"), nullptr);
  SuiteOptions options;
  options.metrics = {"loudness"};
  const auto loaded = MetricSuite::load(options);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("got \"loudness\""), std::string::npos);
  options.metrics = {"snr"};
  options.max_delay_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(MetricSuite::load(options));
}

TEST(Suite, SaysWhichModelsAreMissing) {
  const MetricSuite none = MetricSuite::load({}).value();
  EXPECT_EQ(none.available().size() + none.unavailable().size(), all_metrics().size());
  EXPECT_EQ(none.unavailable().size(), 6u);  // two of ViSQOL, three of DNSMOS, phone_error
  EXPECT_EQ(none.unavailable().front().reason, "needs a model folder with visqol/visqol_lattice.tflite");
  SuiteOptions options;
  options.model_folder = "/no/such/folder";
  options.metrics = {"dnsmos_ovr", "dnsmos_sig", "snr"};
  const MetricSuite elsewhere = MetricSuite::load(options).value();
  ASSERT_EQ(elsewhere.unavailable().size(), 2u);
  EXPECT_NE(elsewhere.unavailable()[0].reason.find("/no/such/folder/dnsmos/dnsmos_p835.safetensors"),
            std::string::npos);
  ThreadPool pool;
  const std::vector<float> sound = bursts(kRate, kRate);
  const Report report = elsewhere.compute(sound, sound, kRate, pool).value();
  ASSERT_EQ(report.scores.size(), 1u);
  EXPECT_EQ(report.scores[0].name, "snr");
  EXPECT_EQ(report.unscored.size(), 2u);
}

TEST(Suite, ADelayedSoundScoresLikeAPunctualOne) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  const std::vector<float> noisy = test::mixed(sound, test::random_floats(sound.size(), 9), 0.02f);
  const MetricSuite quick = suite(kQuick);
  ThreadPool pool;
  const Report punctual = quick.compute(sound, noisy, kRate, pool).value();
  ASSERT_EQ(punctual.scores.size(), kQuick.size());
  EXPECT_EQ(punctual.delay_samples, 0);
  EXPECT_TRUE(punctual.notes.empty());
  for (const std::size_t delay : {16u, 333u, 1600u}) {
    const Report behind = quick.compute(sound, late(noisy, delay), kRate, pool).value();
    EXPECT_EQ(behind.delay_samples, static_cast<std::int64_t>(delay));
    EXPECT_FALSE(behind.notes.empty());
    for (std::size_t i = 0; i < kQuick.size(); ++i) {
      EXPECT_EQ(behind.scores[i].value, punctual.scores[i].value) << behind.scores[i].name;
    }
  }
}

TEST(Suite, SeesPolarityLevelAndADroppedEnd) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  const MetricSuite quick = suite(kQuick);
  ThreadPool pool;
  const auto report = [&](const std::vector<float>& degraded) {
    return quick.compute(sound, degraded, kRate, pool).value();
  };
  const Report same = report(sound);
  EXPECT_EQ(value_of(same, "snr"), 100);
  EXPECT_NEAR(value_of(same, "visqol_speech_exponential"), 5, 1e-3);
  EXPECT_NEAR(value_of(report(scaled(sound, 0.5f)), "snr"), 6.0206, 1e-4);
  // Alignment keeps the sign: the inverted sound finds another place, or none.
  const Report inverted = report(scaled(sound, -1));
  EXPECT_LT(value_of(inverted, "snr"), 20);
  EXPECT_LT(value_of(inverted, "si_sdr"), 20);
  const std::vector<float> dropped(sound.begin(), sound.end() - kRate / 2);
  const Report cut = report(dropped);
  EXPECT_EQ(cut.notes.size(), 1u);
  EXPECT_LT(value_of(cut, "snr"), 10);
  EXPECT_LT(value_of(cut, "stoi"), 0.95);
  EXPECT_LT(value_of(cut, "visqol_speech_exponential"), 4.5);
}

TEST(Suite, TellsOfResampling) {
  const std::vector<float> sound = bursts(48000, 24000);
  ThreadPool pool;
  const Report report =
      suite({"visqol_speech_exponential", "lsd"}).compute(sound, sound, 24000, pool).value();
  ASSERT_EQ(report.scores.size(), 2u);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "visqol_speech_exponential: resampled from 24000 to 16000 Hz");
  EXPECT_NEAR(report.scores[0].value, 5, 1e-3);
}

TEST(Suite, UnfitSoundsAreErrorsOrUnscored) {
  const std::vector<float> sound = bursts(kRate, kRate), silence(sound.size());
  const MetricSuite quick = suite(kQuick);
  ThreadPool pool;
  EXPECT_FALSE(quick.compute({}, sound, kRate, pool));
  EXPECT_FALSE(quick.compute(sound, {}, kRate, pool));
  EXPECT_FALSE(quick.compute(sound, sound, 100, pool));
  std::vector<float> bad = sound;
  bad.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(quick.compute(sound, bad, kRate, pool));
  const Report of_silence = quick.compute(silence, silence, kRate, pool).value();
  EXPECT_EQ(of_silence.unscored.size(), 5u);
  EXPECT_EQ(of_silence.scores.size(), 2u);
  const Report to_silence = quick.compute(sound, silence, kRate, pool).value();
  EXPECT_EQ(to_silence.scores.size(), kQuick.size());
  EXPECT_EQ(value_of(to_silence, "visqol_speech_exponential"), 1);
  const Report brief =
      quick.compute(std::span(sound).first(1), std::span(sound).first(1), kRate, pool).value();
  EXPECT_EQ(brief.scores.size() + brief.unscored.size(), kQuick.size());
}

TEST(Suite, EveryInstructionSetGivesTheSameBits) {
  const std::vector<float> sound = bursts(kRate, kRate);
  const std::vector<float> noisy = test::mixed(sound, test::random_floats(sound.size(), 9), 0.02f);
  const MetricSuite quick = suite(kQuick);
  ThreadPool pool;
  const Report best = quick.compute(sound, noisy, kRate, pool).value();
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target));
    const Report report = quick.compute(sound, noisy, kRate, pool).value();
    for (std::size_t i = 0; i < kQuick.size(); ++i) {
      EXPECT_EQ(report.scores[i].value, best.scores[i].value) << target << " " << best.scores[i].name;
    }
  }
  ASSERT_TRUE(set_cpu_target(""));
}

TEST(Suite, AllMetricsFromManyThreadsGiveTheSameBits) {
  TESSERA_NEED_SHARED("metrics/dnsmos");
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  const std::vector<float> noisy = test::mixed(sound, test::random_floats(sound.size(), 9), 0.02f);
  const MetricSuite all = suite({});
  EXPECT_EQ(all.unavailable().size(), 1u);  // phone_error: tests/metrics/phone_error_test.cpp
  std::vector<Report> reports(2);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    threads.emplace_back([&, i] {
      ThreadPool pool(static_cast<int>(i) + 1);
      reports[i] = all.compute(sound, noisy, kRate, pool).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(reports[0].scores.size(), all.available().size());
  for (std::size_t i = 0; i < all.available().size(); ++i) {
    EXPECT_EQ(reports[0].scores[i].name, all.available()[i]->name);
    EXPECT_EQ(reports[0].scores[i].value, reports[1].scores[i].value) << reports[0].scores[i].name;
  }
}

}  // namespace
}  // namespace tessera::metrics
