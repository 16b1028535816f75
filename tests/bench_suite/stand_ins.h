// Codecs that change a sound in one known way, to see what the suite makes of it, and recordings for them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "apps/bench/suite.h"
#include "codec/media.h"
#include "tests/random.h"

namespace tessera::bench {

using Change =
    std::function<Result<std::vector<float>>(std::span<const float> pcm, const OperatingPoint& point)>;

/// Counts how often it runs.
class StandIn : public CodecRunner {
 public:
  StandIn(std::string name, Change change, std::vector<std::string> points = {"only"})
      : name_(std::move(name)), change_(std::move(change)), points_(std::move(points)) {}

  std::string name() const override { return name_; }
  std::string version() const override { return version_text; }
  std::string recipe(const OperatingPoint& point) const override { return "do " + point.name; }
  std::vector<OperatingPoint> points() const override {
    std::vector<OperatingPoint> points;
    for (const std::string& point : points_) {
      points.emplace_back();
      points.back().name = points.back().setting = point;
      points.back().nominal_kbps = static_cast<double>(points.size());
    }
    return points;
  }
  bool conceals() const override { return can_conceal; }
  Result<CodedSound> run(const OperatingPoint& point, std::span<const float> pcm, int sample_rate_hz,
                         const LossOptions& loss) const override {
    ++runs;
    auto changed = change_(pcm, point);
    if (!changed) return changed.error();
    CodedSound coded;
    coded.pcm = *std::move(changed);
    if (loss.rate > 0) std::fill_n(coded.pcm.begin(), coded.pcm.size() / 4, 0.0F);
    coded.sample_rate_hz = rate_hz ? rate_hz : sample_rate_hz;
    coded.file_bytes = static_cast<std::int64_t>(pcm.size() / 8);
    coded.encode_s = coded.decode_s = 0.001;
    return coded;
  }

  mutable std::atomic<int> runs{0};
  std::string version_text = "1";
  bool can_conceal = false;
  int rate_hz = 0;  ///< of the decoded sound; 0: as it went in

 private:
  std::string name_;
  Change change_;
  std::vector<std::string> points_;
};

inline std::vector<float> copied(std::span<const float> pcm) {
  return {pcm.begin(), pcm.end()};
}

inline Result<std::vector<float>> unchanged(std::span<const float> pcm, const OperatingPoint& /*point*/) {
  return copied(pcm);
}

inline Change delayed(std::size_t samples) {
  return
      [samples](std::span<const float> pcm, const OperatingPoint& /*point*/) -> Result<std::vector<float>> {
        std::vector<float> late(samples);
        late.insert(late.end(), pcm.begin(), pcm.end());
        return late;
      };
}

inline Change scaled_by(float factor) {
  return [factor](std::span<const float> pcm, const OperatingPoint& /*point*/) -> Result<std::vector<float>> {
    std::vector<float> sound = copied(pcm);
    for (float& sample : sound) sample *= factor;
    return sound;
  };
}

inline Change cut_to(double part) {
  return [part](std::span<const float> pcm, const OperatingPoint& /*point*/) -> Result<std::vector<float>> {
    return copied(pcm.first(static_cast<std::size_t>(static_cast<double>(pcm.size()) * part)));
  };
}

/// Noise below the sound, by point: "loud" -26 dB of full scale, others softer.
inline Result<std::vector<float>> noisy(std::span<const float> pcm, const OperatingPoint& point) {
  std::vector<float> sound = copied(pcm);
  const auto noise = test::random_floats(sound.size(), 9, point.name == "loud" ? 0.05F : 0.005F);
  for (std::size_t i = 0; i < sound.size(); ++i) sound[i] += noise[i];
  return sound;
}

/// A folder that goes away, with data/ in it.
class BenchFolder {
 public:
  BenchFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "tessera_" + test->test_suite_name() + "_" + test->name();
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_ + "/data");
  }
  ~BenchFolder() { std::filesystem::remove_all(path_); }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// data/<name>: bursts of sound with pauses, 16 kHz, one channel.
  void record(const std::string& name, double seconds, std::uint64_t seed = 1) const {
    std::vector<float> sound = test::test_sound(static_cast<std::size_t>(seconds * 16000), seed);
    for (std::size_t i = 0; i < sound.size(); ++i) {
      if (i / 1600 % 13 >= 10) sound[i] *= 0.001F;
    }
    record(name, sound);
  }
  /// data/<name>: this sound, at 16 kHz.
  void record(const std::string& name, const std::vector<float>& sound) const {
    const std::string path = path_ + "/data/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    WriteOptions options;
    options.sample_rate_hz = 16000;
    options.channels = 1;
    AudioWriter writer = AudioWriter::create(path, options).value();
    writer.write(sound).value();
    writer.finish().value();
  }

  std::vector<Recording> recordings() const {
    DataOptions options;
    options.folders = {path_ + "/data"};
    return find_recordings(options).value();
  }

 private:
  std::string path_;
};

/// Each codec at all of its points.
inline std::vector<Series> series_of(const std::vector<const CodecRunner*>& runners) {
  std::vector<Series> series;
  for (const CodecRunner* runner : runners) {
    for (OperatingPoint& point : runner->points()) {
      Series& one = series.emplace_back();
      one.runner = runner;
      one.point = std::move(point);
    }
  }
  return series;
}

}  // namespace tessera::bench
