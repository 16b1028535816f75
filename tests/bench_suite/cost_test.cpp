#include "apps/bench/cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "apps/bench/latency.h"
#include "tests/bench_suite/stand_ins.h"

namespace tessera::bench {
namespace {

constexpr int kRateHz = 16000;

std::vector<float> two_seconds() {
  return test::test_sound(2 * kRateHz);
}

// Frames whose sound depends on all of the frame and on `ahead` samples after it, late by `delay`.
Change framed(std::size_t frame, std::size_t ahead, std::size_t delay) {
  return [=](std::span<const float> pcm, const OperatingPoint& /*point*/) -> Result<std::vector<float>> {
    std::vector<float> sound(pcm.size() + delay);
    for (std::size_t begin = 0; begin < pcm.size(); begin += frame) {
      float sum = 0;
      for (std::size_t i = begin; i < std::min(begin + frame + ahead, pcm.size()); ++i) sum += pcm[i];
      for (std::size_t i = begin; i < std::min(begin + frame, pcm.size()); ++i) {
        sound[i + delay] = pcm[i] / 2 + sum / 100;
      }
    }
    return sound;
  };
}

Result<double> latency_of(const CodecRunner& runner, std::int64_t delay) {
  return measure_latency_ms(runner, runner.points().front(), two_seconds(), kRateHz, delay);
}

TEST(Latency, IsFrameAndLookAheadWithoutTheDelayOfTheFile) {
  EXPECT_EQ(latency_of(StandIn("same", unchanged), 0).value(), 1.0 / 16);
  EXPECT_EQ(latency_of(StandIn("frames", framed(320, 0, 0)), 0).value(), 20);
  EXPECT_EQ(latency_of(StandIn("ahead", framed(320, 80, 0)), 0).value(), 25);
  EXPECT_EQ(latency_of(StandIn("long", framed(1280, 0, 0)), 0).value(), 80);
  // A codec that does not take its delay out of the file makes its listener wait as long as one that does.
  EXPECT_EQ(latency_of(StandIn("late", framed(320, 80, 120)), 120).value(), 25);
  EXPECT_EQ(latency_of(StandIn("behind", delayed(160)), 160).value(), 1.0 / 16);
}

TEST(Latency, SaysWhyItIsNotKnown) {
  const StandIn whole("whole", [](std::span<const float> pcm, const OperatingPoint& point) {
    double energy = 0;
    for (const float x : pcm) energy += static_cast<double>(x) * x;
    return scaled_by(static_cast<float>(1 / (1 + energy)))(pcm, point);
  });
  EXPECT_EQ(latency_of(whole, 0).error().message, "whole: the decoded sound changes from its beginning on");
  int calls = 0;
  const StandIn random("random", [&calls](std::span<const float> pcm, const OperatingPoint& point) {
    return scaled_by(static_cast<float>(++calls))(pcm, point);
  });
  EXPECT_EQ(latency_of(random, 0).error().message, "random: gives another sound each time");
  EXPECT_EQ(latency_of(StandIn("deaf", scaled_by(0)), 0).error().message,
            "deaf: the decoded sound does not follow the input");
  const StandIn same("same", unchanged);
  EXPECT_EQ(measure_latency_ms(same, same.points()[0], std::vector<float>(1000), kRateHz, 0).error().code,
            ErrorCode::usage);
}

// "memory": takes 48 MiB; "slow": 30 ms to make; "dies" and "fails".
Result<std::unique_ptr<CodecRunner>> make(const std::string& spec) {
  if (spec == "fails") return Error{ErrorCode::unsupported, "fails: not here"};
  if (spec == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(30));
  Change change = unchanged;
  if (spec == "dies") {
    change = [](std::span<const float> /*pcm*/,
                const OperatingPoint& /*point*/) -> Result<std::vector<float>> { _exit(3); };
  } else if (spec == "memory") {
    change = [](std::span<const float> pcm, const OperatingPoint& point) {
      if (pcm.size() < kRateHz) return unchanged(pcm, point);  // not when it starts
      const std::vector<float> large(12 << 20, 1.0F);
      return scaled_by(large[pcm.size()])(pcm, point);
    };
  }
  return std::unique_ptr<CodecRunner>(std::make_unique<StandIn>(spec, change));
}

TEST(ProcessProbe, MeasuresInAProcessOfItsOwn) {
  const BenchFolder folder;
  folder.record("a.wav", 1.5);
  auto probe = ProcessProbe::start(make);
  ASSERT_TRUE(probe) << probe.error().message;
  const std::string recording = folder / "data/a.wav";
  // What this process holds by now is not counted.
  const std::vector<float> ours(32 << 20, 1.0F);
  const auto plain = probe->measure("plain", "only", recording);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_LT(plain->peak_memory_mib, 32);
  const auto memory = probe->measure("memory", "only", recording);
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->peak_memory_mib, 47);
  EXPECT_LT(memory->peak_memory_mib, 47 + 32 + ours[0]);
  EXPECT_GE(probe->measure("slow", "only", recording)->start_up_ms, 30);
  EXPECT_EQ(probe->measure("fails", "only", recording).error().message, "fails: not here");
  EXPECT_EQ(probe->measure("dies", "only", recording).error().code, ErrorCode::io);
  EXPECT_EQ(probe->measure("plain", "none", recording).error().code, ErrorCode::usage);
  EXPECT_EQ(probe->measure("plain", "only", folder / "none.wav").error().code, ErrorCode::io);
  EXPECT_TRUE(probe->measure("plain", "only", recording));
}

TEST(Cost, SpeedIsTheBestOfSeveralRuns) {
  const BenchFolder folder;
  folder.record("a.wav", 1);
  folder.record("b.wav", 2);
  const StandIn codec("codec", unchanged);
  const auto speed =
      measure_speed(codec, codec.points()[0], {folder / "data/a.wav", folder / "data/b.wav"}, 3);
  ASSERT_TRUE(speed);
  EXPECT_EQ(codec.runs, 6);
  EXPECT_NEAR(speed->encode, 1500, 1e-6);  // 3 s in 1 ms each
  EXPECT_NEAR(speed->decode, 1500, 1e-6);
}

TEST(Cost, IsMeasuredOnceAndKeepsWhatFailed) {
  const BenchFolder folder;
  folder.record("a.wav", 1.5);
  auto probe = ProcessProbe::start(make);
  ASSERT_TRUE(probe);
  const auto cache = ResultCache::open(folder / "cache").value();
  const StandIn codec("codec", framed(320, 0, 0));
  CostOptions options;
  options.recordings = {folder / "data/a.wav"};
  const auto measure = [&](const std::string& spec) {
    return measure_cost_once(cache, codec, codec.points()[0], spec, 0, *probe, options, "machine").value();
  };
  const CostOutcome first = measure("plain");
  EXPECT_EQ(first.cost.codec, "codec");
  EXPECT_EQ(first.cost.point, "only");
  EXPECT_EQ(first.cost.latency_ms, 20);
  EXPECT_NEAR(first.cost.encode_real_time, 1500, 1e-6);
  EXPECT_GT(first.cost.start_up_ms, 0);
  EXPECT_TRUE(first.notes.empty());
  const int runs = codec.runs;
  const CostOutcome second = measure("plain");
  EXPECT_EQ(codec.runs, runs);
  EXPECT_EQ(second.cost.start_up_ms, first.cost.start_up_ms);
  EXPECT_EQ(second.cost.latency_ms, 20);
  const CostOutcome failed = measure("fails");
  EXPECT_EQ(failed.cost.peak_memory_mib, -1);
  EXPECT_EQ(failed.cost.latency_ms, 20);
  EXPECT_EQ(failed.notes, std::vector<std::string>{"codec, only: fails: not here"});
}

TEST(Cost, DelayIsTheMiddleOne) {
  std::vector<ResultRow> rows;
  for (const std::int64_t delay : {900, 40, 41, -3, 44}) {
    ResultRow& row = rows.emplace_back();
    row.codec = "c";
    row.point = "p";
    row.file_bytes = 1;
    row.delay_samples = delay;
  }
  SeriesKey key;
  key.codec = "c";
  key.point = "p";
  EXPECT_EQ(median_delay(rows, key), 41);
  key.point = "q";
  EXPECT_EQ(median_delay(rows, key), 0);
}

}  // namespace
}  // namespace tessera::bench
