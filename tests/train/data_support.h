// Helpers of the data tests: a scratch folder, small recordings whose every sample says where it is.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "codec/media.h"
#include "train/data/crops.h"

namespace tessera::train::test {

/// A folder that lives as long as the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder");
    root_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(root_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline void write_audio(const std::string& path, int rate_hz, int channels, const std::vector<float>& samples,
                        SampleFormat format = SampleFormat::pcm16) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  WriteOptions options;
  options.sample_rate_hz = rate_hz;
  options.channels = channels;
  options.format = format;
  AudioWriter writer = AudioWriter::create(path, options).value();
  writer.write(samples).value();
  writer.finish().value();
}

/// Sample `t` of recording `r`: an exact 16-bit value, different at neighbouring places and in other
/// recordings.
inline float marker(std::int64_t r, std::int64_t t) {
  return static_cast<float>((r * 7919 + t * 31) % 20011 - 10005) / 32768.0f;
}

inline std::vector<float> markers(std::int64_t r, std::int64_t count) {
  std::vector<float> samples;
  for (std::int64_t t = 0; t < count; ++t) samples.push_back(marker(r, t));
  return samples;
}

/// A square wave: its RMS is its level.
inline std::vector<float> square(float level, std::int64_t count) {
  std::vector<float> samples;
  for (std::int64_t t = 0; t < count; ++t) samples.push_back(t % 8 < 4 ? level : -level);
  return samples;
}

inline constexpr int kRate = 8000;

/// Options for one folder of recordings at 8 kHz.
inline DatasetOptions options_for(const std::string& source, const std::string& cache) {
  DatasetOptions options;
  options.sources.sources = {source};
  options.sample_rate_hz = kRate;
  options.cache_folder = cache;
  options.threads = 2;
  return options;
}

/// Recordings 0, 1, ... of markers with these lengths, named so that their order is kept; open() it after.
inline void write_markers(const std::string& folder, const std::vector<std::int64_t>& lengths) {
  for (std::size_t r = 0; r < lengths.size(); ++r)
    write_audio(folder + "/" + static_cast<char>('a' + r) + ".wav", kRate, 1,
                markers(static_cast<std::int64_t>(r), lengths[r]));
}

inline std::vector<float> whole(const Dataset& set, std::int64_t recording) {
  std::vector<float> samples(
      static_cast<std::size_t>(set.recordings().at(static_cast<std::size_t>(recording)).samples));
  set.read(recording, 0, samples);
  return samples;
}

inline std::string error_of(const DatasetOptions& options) {
  const auto opened = Dataset::open(options);
  return opened ? "" : opened.error().message;
}

}  // namespace tessera::train::test
