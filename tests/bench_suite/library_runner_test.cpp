// Opus, Speex and Codec 2 as libraries: rates, lengths, delays, files that other readers read, concealment.
#include <algorithm>
#include <cmath>

#include "apps/bench/codec2_runner.h"
#include "apps/bench/opus_runner.h"
#include "apps/bench/sound_files.h"
#include "apps/bench/speex_runner.h"
#include "metrics/alignment.h"
#include "tests/bench_suite/runner_support.h"

namespace tessera::bench {
namespace {

#define TESSERA_NEED(absence) \
  if (!(absence).empty()) GTEST_SKIP() << (absence)

double kbps(std::int64_t bytes, double seconds) {
  return static_cast<double>(bytes) * 8 / 1000 / seconds;
}

/// Loss: the same again without and with rate 0, as many lost as the trace says, other sound but of equal
/// length.
void expect_concealment(const FileRunner& runner, const OperatingPoint& point, std::span<const float> pcm,
                        int rate_hz) {
  ASSERT_TRUE(runner.conceals());
  const auto whole = runner.run(point, pcm, rate_hz, {}).value();
  const auto none = runner.run(point, pcm, rate_hz, {.rate = 0, .mean_burst = 3, .seed = 9}).value();
  EXPECT_EQ(none.pcm, whole.pcm);
  EXPECT_EQ(none.lost, 0);
  const LossOptions loss{.rate = 0.2, .mean_burst = 2, .seed = 4};
  const auto lossy = runner.run(point, pcm, rate_hz, loss).value();
  auto trace = LossTrace::create(loss).value();
  std::int64_t lost = 0;
  for (std::int64_t i = 0; i < lossy.packets; ++i) lost += trace.next() ? 1 : 0;
  EXPECT_GT(lost, 0);
  EXPECT_EQ(lossy.lost, lost);
  EXPECT_EQ(lossy.packets, whole.packets);
  EXPECT_EQ(lossy.file_bytes, whole.file_bytes);
  EXPECT_EQ(lossy.pcm.size(), whole.pcm.size());
  EXPECT_NE(lossy.pcm, whole.pcm);
  EXPECT_EQ(runner.run(point, pcm, rate_hz, loss).value().pcm, lossy.pcm);
  // Gaps are filled with sound.
  const auto zeros = std::count(lossy.pcm.begin(), lossy.pcm.end(), 0.0f);
  EXPECT_LT(zeros, lost * rate_hz / 50 / 4);
}

TEST(OpusRunner, KeepsLengthTimeAndRate) {
  TESSERA_NEED(opus_absence());
  const auto made = make_opus_runner();
  const FileRunner& runner = file_runner(made);
  EXPECT_EQ(runner.name(), "opus");
  ASSERT_EQ(runner.points().size(), 5u);
  const auto pcm = speech_like(3, 16000);
  double correlation = 0;
  for (const OperatingPoint& point : runner.points()) {
    const auto sound = expect_run(runner, point, pcm, 16000, 0);
    EXPECT_NEAR(kbps(sound.payload_bytes, 3), point.nominal_kbps, 0.4 * point.nominal_kbps) << point.name;
    EXPECT_EQ(sound.packets, 151);  // 150 of the sound and one that the delay pushes out
    const auto delay = metrics::find_delay(pcm, sound.pcm, 1600);
    EXPECT_LE(std::abs(delay.samples), 16) << point.name;
    correlation = delay.correlation;
  }
  EXPECT_GT(correlation, 0.9);  // at the highest rate
}

TEST(OpusRunner, TakesEveryRate) {
  TESSERA_NEED(opus_absence());
  const auto made = make_opus_runner({.kbps = {24}, .application = OpusApplication::audio});
  const FileRunner& runner = file_runner(made);
  EXPECT_EQ(runner.name(), "opus_audio");
  for (const int rate_hz : {8000, 11025, 16000, 24000, 44100, 48000}) {
    const auto pcm = speech_like(0.73, rate_hz);
    const auto sound = expect_run(runner, runner.points()[0], pcm, rate_hz, 2);
    const auto delay = metrics::find_delay(pcm, sound.pcm, rate_hz / 10);
    EXPECT_LE(std::abs(delay.samples), rate_hz / 1000) << rate_hz;
    EXPECT_GT(delay.correlation, 0.85) << rate_hz;
  }
}

TEST(OpusRunner, WritesFilesThatOthersRead) {
  TESSERA_NEED(opus_absence());
  const auto made = make_opus_runner({.kbps = {16}});
  const FileRunner& runner = file_runner(made);
  const auto whole = speech_like(2.1, 16000);
  for (const std::size_t samples : {1u, 319u, 320u, 16000u * 2 + 77}) {
    const auto pcm = std::span(whole).first(samples);
    const auto file = runner.encode(runner.points()[0], pcm, 16000).value();
    const std::string path = testing::TempDir() + "tessera_opus_runner_test.opus";
    write_bytes(path, file.bytes).value();
    const auto read = read_sound(path);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->sample_rate_hz, 48000);
    EXPECT_EQ(read->pcm.size(), 3 * samples);
    std::remove(path.c_str());
    if (samples < 1000) continue;
    const auto own = runner.decode(runner.points()[0], file.bytes, 16000, nullptr).value();
    const auto theirs = resampled(read->pcm, 48000, 16000).value();
    EXPECT_GT(metrics::find_delay(own.pcm, theirs, 0).correlation, 0.995);
  }
}

TEST(OpusRunner, Conceals) {
  TESSERA_NEED(opus_absence());
  const auto made = make_opus_runner({.kbps = {16}});
  expect_concealment(file_runner(made), file_runner(made).points()[0], speech_like(2, 16000), 16000);
}

TEST(OpusRunner, RejectsBitratesAndForeignFiles) {
  TESSERA_NEED(opus_absence());
  EXPECT_FALSE(make_opus_runner({.kbps = {5}}));
  EXPECT_FALSE(make_opus_runner({.kbps = {600}}));
  const auto made = make_opus_runner();
  const FileRunner& runner = file_runner(made);
  const OperatingPoint point = runner.points()[0];
  auto file = runner.encode(point, speech_like(3, 16000), 16000).value().bytes;
  EXPECT_FALSE(runner.decode(point, std::vector<std::byte>(100), 16000, nullptr));
  EXPECT_FALSE(runner.decode(point, std::span(file).first(file.size() / 2), 16000, nullptr));
  file[file.size() / 2] ^= std::byte{1};  // Ogg's checksum finds it
  EXPECT_FALSE(runner.decode(point, file, 16000, nullptr));
}

TEST(SpeexRunner, KeepsLengthTimeAndRate) {
  TESSERA_NEED(speex_absence());
  const auto made = make_speex_runner();
  const FileRunner& runner = file_runner(made);
  const auto pcm = speech_like(3, 16000);
  double before_kbps = 0;
  for (const OperatingPoint& point : runner.points()) {
    const auto sound = expect_run(runner, point, pcm, 16000, 0);
    EXPECT_NEAR(kbps(sound.payload_bytes, 3), point.nominal_kbps, 0.06 * point.nominal_kbps) << point.name;
    EXPECT_GT(point.nominal_kbps, before_kbps);
    before_kbps = point.nominal_kbps;
    const auto delay = metrics::find_delay(pcm, sound.pcm, 1600);
    EXPECT_LE(std::abs(delay.samples), 16) << point.name;
    EXPECT_GT(delay.correlation, 0.7) << point.name;
  }
  expect_run(runner, runner.points()[0], speech_like(1, 44100), 44100, 2);
}

TEST(SpeexRunner, Conceals) {
  TESSERA_NEED(speex_absence());
  const auto made = make_speex_runner({.qualities = {6}});
  expect_concealment(file_runner(made), file_runner(made).points()[0], speech_like(2, 16000), 16000);
}

TEST(SpeexRunner, RejectsQualitiesAndForeignFiles) {
  TESSERA_NEED(speex_absence());
  EXPECT_FALSE(make_speex_runner({.qualities = {11}}));
  const auto made = make_speex_runner();
  EXPECT_FALSE(file_runner(made).decode({}, std::vector<std::byte>(100), 16000, nullptr));
  EXPECT_FALSE(
      file_runner(made).run({.name = "quality 1", .setting = "1"}, speech_like(0.1, 16000), 16000, {}));
}

TEST(Codec2Runner, KeepsTheCourseOfSpeechAtItsRate) {
  TESSERA_NEED(codec2_absence());
  const auto made = make_codec2_runner();
  const FileRunner& runner = file_runner(made);
  EXPECT_FALSE(runner.conceals());
  ASSERT_EQ(runner.points().size(), 4u);
  const auto pcm = speech_like(4, 16000);
  for (const OperatingPoint& point : runner.points()) {
    const auto sound = expect_run(runner, point, pcm, 16000, 640);
    EXPECT_NEAR(kbps(sound.payload_bytes, 4), point.nominal_kbps, 0.03 * point.nominal_kbps) << point.name;
    const auto delay = metrics::find_delay(envelope(pcm, 16000), envelope(sound.pcm, 16000), 20);
    EXPECT_GE(delay.samples, 0) << point.name;
    EXPECT_LE(delay.samples, 8) << point.name;  // of 10 ms
    EXPECT_GT(delay.correlation, 0.8) << point.name;
  }
}

TEST(Codec2Runner, RejectsModes) {
  TESSERA_NEED(codec2_absence());
  const auto made = make_codec2_runner({.modes = {"900"}});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("700C"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace tessera::bench
