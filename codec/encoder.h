// PCM in, tokens out: one stream, or a batch of streams that are stepped together.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "codec/state.h"

namespace tessera {

/// What one stream of a batch brings to a step.
struct EncoderInput {
  int stream = 0;                   ///< as EncoderBatch::open() named it; at most once per step
  std::span<const float> pcm = {};  ///< mono, at the codec's sample rate, nominally -1 to 1; any length
  bool end = false;                 ///< the stream ends after this PCM
};

/// Many streams of one codec. A stream gives the same bits alone and in any company. Streams may join, leave
/// and idle (be left out of a step) at any time. Nothing is allocated in step().
class EncoderBatch {
 public:
  /// Up to `max_streams` streams at once.
  EncoderBatch(const std::shared_ptr<const Codec>& codec, int max_streams, const StreamOptions& options = {});
  EncoderBatch(EncoderBatch&&) noexcept;
  EncoderBatch& operator=(EncoderBatch&&) noexcept;
  ~EncoderBatch();

  const CodecInfo& info() const;
  int codebooks() const;
  /// A fresh stream's number. Throws UsageError when all are taken.
  int open();
  void close(int stream);
  State& state(int stream);
  /// Pushes each input to its stream; `sink(stream, frame)` gets every frame that is complete. A stream that
  /// ended starts anew with its next PCM.
  void step(std::span<const EncoderInput> inputs, FunctionRef<void(int, const Frame&)> sink);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One stream.
class Encoder {
 public:
  Encoder(std::shared_ptr<const Codec> codec, const StreamOptions& options);

  const CodecInfo& info() const { return batch_.info(); }
  int codebooks() const { return batch_.codebooks(); }
  /// Takes any number of samples, hands over every complete frame.
  void push(std::span<const float> pcm, FrameSink sink);
  /// Ends the stream: hands over what is left. The next push starts a new stream.
  void flush(FrameSink sink);
  /// The stream's state: save() it, restore() it, or copy it.
  State& state() { return batch_.state(0); }
  /// Another encoder that goes on from here by itself.
  Encoder fork();

 private:
  std::shared_ptr<const Codec> codec_;
  StreamOptions options_;
  EncoderBatch batch_;
};

}  // namespace tessera
