// The header of a WAV file (RIFF, Microsoft 1994; extensible format for more than two channels) and of RF64
// (EBU Tech 3306) for what 32-bit sizes cannot say. A seekable file reserves the room that RF64 needs in a
// JUNK chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/media.h"

namespace tessera {

/// Bytes of one sample.
constexpr int sample_bytes(SampleFormat format) {
  return format == SampleFormat::pcm16 ? 2 : format == SampleFormat::pcm24 ? 3 : 4;
}

/// Header of a file that holds `frames` frames; its length does not depend on `frames`. RF64 when the file
/// would pass 4 GiB.
std::vector<std::byte> wav_header(const WriteOptions& options, int64_t frames);

/// Header for a pipe: sizes 0xFFFFFFFF.
std::vector<std::byte> wav_stream_header(const WriteOptions& options);

}  // namespace tessera
