// What goes to and comes from a codec that is a program: whole files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::bench {

/// A whole file. Error: io (no such file, empty).
Result<std::vector<std::byte>> read_bytes(const std::string& path);
/// Error: io.
Result<void> write_bytes(const std::string& path, std::span<const std::byte> bytes);

struct ReadSound {
  std::vector<float> pcm = {};
  int sample_rate_hz = 0;
};
/// Any sound file as one channel at its own rate. Errors: those of AudioReader.
Result<ReadSound> read_sound(const std::string& path);
/// A 16-bit mono WAV file, as AudioWriter makes it.
std::vector<std::byte> wav_bytes(std::span<const float> pcm, int sample_rate_hz);
/// Bytes of its header.
std::size_t wav_header_bytes();

}  // namespace tessera::bench
