// Helpers of the media tests: a scratch folder, files made on the fly, whole-file reading and writing.
#pragma once

#include <gtest/gtest.h>
#include <sndfile.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

#include "codec/media.h"

namespace tessera::test {

/// A folder that lives as long as the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-media-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder");
    root_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(root_); }
  Scratch(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return root_ + "/" + name; }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes through libsndfile, independent of AudioWriter. Integers are left-aligned in 32 bits.
template <class T>
void write_sndfile(const std::string& path, int format, int rate, int channels,
                   const std::vector<T>& samples) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr) << path << ": " << sf_strerror(nullptr);
  const auto count = static_cast<sf_count_t>(samples.size());
  sf_count_t written = 0;
  if constexpr (std::is_same_v<T, int>) {
    written = sf_write_int(file, samples.data(), count);
  } else if constexpr (std::is_same_v<T, float>) {
    written = sf_write_float(file, samples.data(), count);
  } else {
    written = sf_write_double(file, samples.data(), count);
  }
  sf_close(file);
  ASSERT_EQ(written, count) << path;
}

inline std::vector<float> sine(double hz, int rate, size_t frames, double level = 0.5) {
  std::vector<float> x(frames);
  for (size_t t = 0; t < frames; ++t) {
    x[t] = static_cast<float>(level * std::sin(2 * std::numbers::pi * hz * static_cast<double>(t) / rate));
  }
  return x;
}

/// All samples, and the error that came, if any.
struct Sound {
  std::vector<float> samples;
  int rate = 0, channels = 0;
  std::string error;
  std::vector<std::string> notes;
};

inline Sound read_all(AudioReader& reader, size_t frames_per_read = 1000) {
  Sound sound;
  sound.rate = reader.sample_rate_hz();
  sound.channels = reader.channels();
  const auto channels = static_cast<size_t>(reader.channels());
  std::vector<float> block(frames_per_read * channels);
  for (;;) {
    const auto n = reader.read(block);
    if (!n) {
      EXPECT_TRUE(sound.error.empty()) << "a second error: " << n.error().message;
      if (!sound.error.empty()) break;
      sound.error = n.error().message;
      continue;
    }
    if (*n == 0) break;
    EXPECT_TRUE(sound.error.empty()) << "sound after an error";
    sound.samples.insert(sound.samples.end(), block.begin(),
                         block.begin() + static_cast<std::ptrdiff_t>(*n * channels));
  }
  sound.notes = reader.notes();
  return sound;
}

inline Sound read_file(const std::string& path, const ReadOptions& options = {},
                       size_t frames_per_read = 1000) {
  auto reader = AudioReader::open(path, options);
  if (!reader) {
    ADD_FAILURE() << reader.error().message;
    return {};
  }
  return read_all(*reader, frames_per_read);
}

/// The `ffmpeg` command with these arguments; false when it is not installed or fails.
inline bool ffmpeg(const std::string& arguments) {
  return std::system(("ffmpeg -v quiet -nostdin -y " + arguments + " >/dev/null 2>&1").c_str()) == 0;
}

inline bool have_ffmpeg() {
  static const bool have = ffmpeg("-version");
  return have;
}

}  // namespace tessera::test
