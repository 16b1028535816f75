// The container of token streams, `.tsr`: what a file says about itself, and what the writer and the reader
// share. docs/bitstream.md is the specification. Version 1 stores one audio track; the block tags leave room
// for more.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "quantizers/token_coder.h"

namespace tessera {

enum class TsrTrackType : std::uint8_t { audio = 0 };

/// What a `.tsr` file says about its stream.
struct TsrHeader {
  std::string codec_id;             ///< family of the codec: 1 to 32 of a-z 0-9 . _ -
  std::uint64_t weights_hash = 0;   ///< CodecInfo::weights_hash
  int sample_rate_hz = 0;           ///< 1 to 2^31 - 1
  int samples_per_frame = 0;        ///< 1 to 2^20; frames per second = sample_rate_hz / samples_per_frame
  int pre_skip = 0;                 ///< samples to drop at the start of the decoder's output, up to 2^20
  int channels = 1;                 ///< 1 to 255, each coded as a token stream of its own
  std::vector<int> codebook_sizes;  ///< one per stored codebook, 1 to 255 of them, each 2 to 65536
  TsrTrackType track_type = TsrTrackType::audio;
  EntropyCoder entropy_coder = EntropyCoder::adaptive;
  std::uint64_t model_hash = 0;  ///< of the entropy coder's model; 0 for packed and adaptive
  int frames_per_segment =
      0;  ///< the most frames of a segment; 0: the writer chooses (tsr_frames_per_segment)
  /// What the user wants to know about the file, such as the name and rate of the original: UTF-8, at most 64
  /// entries and 4096 bytes. No reader needs it.
  std::vector<std::pair<std::string, std::string>> metadata;

  int codebooks() const { return static_cast<int>(codebook_sizes.size()); }
  double frame_rate_hz() const { return static_cast<double>(sample_rate_hz) / samples_per_frame; }
  /// Bits of one packed frame of all channels: the sum of ceil(log2(size)) times the channels.
  std::int64_t bits_per_frame() const;
};

/// The writer's choice of frames per segment: one second, or more at low rates so that what a segment costs
/// stays near 1.5 % of it (480 bytes of tokens), but at most four seconds and at most 2^20 tokens.
int tsr_frames_per_segment(const TsrHeader& header);

/// Errors (usage): the first field that is out of its range, or a header above 255 bytes (very many different
/// codebook sizes).
Result<void> check_tsr_header(const TsrHeader& header);

/// The rate that counts: all bytes of a file, as kilobits per second of its samples. 0 for an empty stream.
double true_kbps(std::uint64_t bytes, std::uint64_t samples, int sample_rate_hz);

}  // namespace tessera
