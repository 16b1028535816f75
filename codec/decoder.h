// Tokens in, PCM out: one stream, or a batch of streams that are stepped together.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "codec/state.h"

namespace tessera {

/// What one stream of a batch brings to a step.
struct DecoderInput {
  int stream = 0;                             ///< as DecoderBatch::open() named it; at most once per step
  std::span<const std::int32_t> tokens = {};  ///< whole frames, one after the other, `codebooks` tokens each
  int codebooks = 0;                          ///< tokens per frame; 0: the number the batch was opened with
  int lost = 0;                               ///< frames missing before these: concealed
  bool end = false;                           ///< the stream ends after these
};

/// Many streams of one codec; see EncoderBatch.
class DecoderBatch {
 public:
  DecoderBatch(const std::shared_ptr<const Codec>& codec, int max_streams, const StreamOptions& options = {});
  DecoderBatch(DecoderBatch&&) noexcept;
  DecoderBatch& operator=(DecoderBatch&&) noexcept;
  ~DecoderBatch();

  const CodecInfo& info() const;
  int codebooks() const;
  int open();
  void close(int stream);
  State& state(int stream);
  /// Decodes each input; `sink(stream, pcm)` gets the samples as they come, the codec's delay dropped. Error
  /// (format): a token outside its codebook, or tokens that are no whole frames; no stream has moved then.
  Result<void> step(std::span<const DecoderInput> inputs,
                    FunctionRef<void(int, std::span<const float>)> sink);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One stream.
class Decoder {
 public:
  Decoder(std::shared_ptr<const Codec> codec, const StreamOptions& options);

  const CodecInfo& info() const { return batch_.info(); }
  int codebooks() const { return batch_.codebooks(); }
  /// Decodes one frame of 1 to info().codebooks tokens. Error (format): a token outside its codebook; nothing
  /// moved then.
  Result<void> push(const Frame& frame, PcmSink sink);
  /// Decodes whole frames of codebooks() tokens each.
  Result<void> push(std::span<const std::int32_t> tokens, PcmSink sink);
  /// Conceals one missing frame: the last one again, fading out within about 120 ms; sound fades in after it.
  void lost(PcmSink sink);
  /// Ends the stream: hands over what is left. The next push starts a new stream.
  void flush(PcmSink sink);
  State& state() { return batch_.state(0); }
  Decoder fork();

 private:
  std::shared_ptr<const Codec> codec_;
  StreamOptions options_;
  DecoderBatch batch_;
};

}  // namespace tessera
