// Tokens of one stream with one or more channels through a decoder into an audio file: interleaves the
// channels and cuts the end to the exact length. Memory stays that of a block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apps/tail_trimmer.h"
#include "codec/codec.h"
#include "codec/decoder.h"
#include "codec/media.h"
#include "core/result.h"

namespace tessera::app {

class AudioDecoder {
 public:
  /// Writes to `writer`, which must outlive this. Every channel becomes a stream of its own.
  AudioDecoder(const std::shared_ptr<const Codec>& codec, int channels, const StreamOptions& options,
               AudioWriter& writer);

  /// Whole frames, [frames, channels, codebooks]. Errors: format (a token outside its codebook), io.
  Result<void> push(std::span<const std::int32_t> tokens, int codebooks);
  /// Conceals `frames` missing frames. Errors: io.
  Result<void> lost(std::int64_t frames);
  /// Ends the stream after `total` samples per channel (nothing: all there are) and returns how many it has
  /// now: other than `total` when the tokens do not last so long, or go on for more than a frame and the
  /// pre-skip. Errors: io.
  Result<std::int64_t> finish(std::optional<std::int64_t> total);
  /// Samples per channel decoded so far, those held back included.
  std::int64_t samples() const { return samples_; }

 private:
  Result<void> step(bool end);
  void write(std::span<const float> interleaved);

  int max_frames_;
  AudioWriter& writer_;
  DecoderBatch batch_;
  TailTrimmer trimmer_;                            // of interleaved samples
  std::vector<DecoderInput> inputs_;               // [channels]
  std::vector<std::vector<std::int32_t>> tokens_;  // [channels][frames * codebooks]
  std::vector<std::vector<float>> pcm_;            // [channels][samples]
  std::vector<float> interleaved_;
  std::int64_t samples_ = 0;
  Result<void> written_;  // the first error of the writer
};

}  // namespace tessera::app
