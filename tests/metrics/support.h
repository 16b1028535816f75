// Helpers of the metric tests: recordings of the shared folder, and sounds made from them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codec/media.h"
#include "core/thread_pool.h"
#include "tests/random.h"

namespace tessera::test {

inline std::string shared(const std::string& name) {
  return std::string(TESSERA_SHARED_DIR) + "/" + name;
}

/// Skips the test where the recordings are not there.
#define TESSERA_NEED_SHARED(name)                              \
  if (!std::filesystem::exists(::tessera::test::shared(name))) \
  GTEST_SKIP() << "no " << ::tessera::test::shared(name)

struct Recording {
  std::vector<float> samples = {};
  int rate_hz = 0;
};

/// One channel: the mean of all.
inline Recording read_recording(const std::string& name) {
  ReadOptions options;
  options.channels = ChannelMode::mix;
  AudioReader reader = AudioReader::open(shared(name), options).value();
  Recording recording;
  recording.rate_hz = reader.sample_rate_hz();
  std::vector<float> part(1 << 16);
  for (std::size_t count = reader.read(part).value(); count > 0; count = reader.read(part).value()) {
    recording.samples.insert(recording.samples.end(), part.begin(),
                             part.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return recording;
}

/// a + factor * b, b repeated to the length of a.
inline std::vector<float> mixed(std::vector<float> a, const std::vector<float>& b, float factor) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i % b.size()];
  return a;
}

inline std::vector<float> scaled(std::vector<float> sound, float factor) {
  for (float& sample : sound) sample *= factor;
  return sound;
}

/// Zeros before the sound.
inline std::vector<float> late(const std::vector<float>& sound, std::size_t samples) {
  std::vector<float> result(samples);
  result.insert(result.end(), sound.begin(), sound.end());
  return result;
}

/// Speech-like bursts with pauses: a second of sound, 0.3 s of near silence, and so on.
inline std::vector<float> bursts(std::size_t samples, int rate_hz, std::uint64_t seed = 1) {
  std::vector<float> sound = test_sound(samples, seed);
  for (std::size_t i = 0; i < samples; ++i) {
    if (i * 10 / static_cast<std::size_t>(rate_hz) % 13 >= 10) sound[i] *= 0.001f;
  }
  return sound;
}

}  // namespace tessera::test
