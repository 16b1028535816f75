// One recording, decoded once: mono PCM at the model's rate in a file that is mapped or loaded whole. 16-bit
// where that loses nothing, else 32-bit float. The file names its own length and hashes (XXH3), so that a
// damaged one is noticed and made again. For the machine that wrote it: native byte order, not an interchange
// format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::train {

struct CachedRecording {
  std::int64_t samples = 0;
  bool pcm16 = false;                   ///< int16, value / 32768; else f32
  int source_rate_hz = 0;               ///< of the recording itself
  int source_channels = 0;              ///< of the recording itself
  std::vector<std::string> notes = {};  ///< what was done to the sound (AudioReader::notes)

  std::size_t bytes_per_sample() const { return pcm16 ? 2 : 4; }
};

/// Bytes before the first sample: a multiple of 64.
inline constexpr std::size_t kCacheHeaderBytes = 64;

/// The name of the cache file of a recording: a hash of its real path, its size, its time of modification and
/// the rate. Error io: no such file, not a regular file.
Result<std::string> cache_name(const std::string& recording, int sample_rate_hz);

/// Describes a cache file after checking its header and length and, with `whole`, the hash of everything in
/// it. Errors: io (not there, not readable), damaged (not such a file, another rate, cut off, altered).
Result<CachedRecording> inspect_cache(const std::string& cache, int sample_rate_hz, bool whole);

/// Decodes a recording into `cache`, which appears when it is whole. An error is the recording's (not
/// readable, damaged, without sound, samples that are no numbers or beyond 16 times full scale). Throws
/// ResultError when the cache cannot be written: no other recording would fare better.
Result<CachedRecording> decode_to_cache(const std::string& recording, int sample_rate_hz,
                                        const std::string& cache);

/// Samples [begin, begin + out.size()) from the bytes of the samples of a cache file.
void read_samples(std::span<const std::byte> samples, bool pcm16, std::int64_t begin, std::span<float> out);

}  // namespace tessera::train
