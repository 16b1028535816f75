// Runs the built command in a folder of its own and looks at what it wrote; makes the recordings it is fed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera::test {

/// How a run ended.
struct Outcome {
  int exit_code = -1;  ///< 128 + the signal, if one ended it
  std::string out, err;
  std::int64_t peak_kib = 0;  ///< largest resident set
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Interleaved samples of a recording.
struct Sound {
  int rate_hz = 16000, channels = 1;
  std::vector<float> samples;
  std::int64_t frames() const { return static_cast<std::int64_t>(samples.size()) / channels; }
};

/// Something like a voice: a gliding tone with overtones under a slow envelope, and noise; differs between
/// channels.
Sound voice(double seconds, int rate_hz = 16000, int channels = 1);

/// bits: 8, 16, 24, or 32 for float.
std::string wav_bytes(const Sound& sound, int bits);
/// A 16-bit or float WAV as the command writes it; fails the test when it is not one.
Sound parse_wav(const std::string& bytes);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

/// An empty folder that goes away with the test; file names are relative to it.
class CommandTest : public testing::Test {
 protected:
  CommandTest();
  ~CommandTest() override;

  /// `tessera ARGUMENTS...` with the folder as working directory; `environment` holds NAME=VALUE.
  Outcome tessera(const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment = {}) const;
  /// A line for /bin/sh in the folder, where $T is the command.
  Outcome shell(const std::string& line) const;
  /// tessera() that must succeed.
  Outcome ok(const std::vector<std::string>& arguments,
             const std::vector<std::string>& environment = {}) const;

  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  void write(const std::string& name, const std::string& bytes) const { write_file(folder_ / name, bytes); }
  void write_wav(const std::string& name, const Sound& sound, int bits = 16) const {
    write(name, wav_bytes(sound, bits));
  }
  Sound read_wav(const std::string& name) const { return parse_wav(read(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  /// Names in the folder, sorted.
  std::vector<std::string> listing() const;

  std::filesystem::path folder_;
};

}  // namespace tessera::test
