// The face of the library: load a codec, push PCM and get tokens, push tokens and get PCM.
//
//   auto codec = tessera::Codec::builtin().value();
//   auto encoder = codec->encoder({.codebooks = 8});
//   encoder.push(pcm, [&](const tessera::Frame& frame) { use(frame.tokens); });
//   encoder.flush([&](const tessera::Frame& frame) { use(frame.tokens); });
//
// A loaded codec is immutable and shared by any number of streams; a stream's state is one flat block. Any
// split of the input, any batch, number of threads and instruction set gives the same bits.
// docs/quickstart.md shows more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codec/state.h"
#include "core/function_ref.h"
#include "core/gemm.h"
#include "core/result.h"

namespace tessera {

struct Model;  // codec/model.h: the layers of a loaded codec

/// What a loaded codec is.
struct CodecInfo {
  std::string family;  ///< "mimi", "encodec", "tessera"
  std::string name;    ///< where the weights came from: a file name, or "tessera_speech (built in)"
  /// Of the tensors, whatever the layout of the file and the precision in memory, and of the configuration,
  /// if the file has one, but not of how an encoder searches.
  std::uint64_t weights_hash = 0;
  std::int64_t parameters = 0;
  int sample_rate_hz = 0;
  int samples_per_frame = 0;
  int codebooks = 0;                ///< the most there are
  std::vector<int> codebook_sizes;  ///< [codebooks]
  int pre_skip = 0;  ///< samples of delay; the decoder drops them, the encoder codes as many past the end
  /// Algorithmic latency, encoder and decoder together: a sample waits for its frame to fill and for
  /// pre_skip.
  int latency_samples = 0;

  double frame_rate_hz() const { return static_cast<double>(sample_rate_hz) / samples_per_frame; }
  /// Bits of the packed tokens per second with the first `count` codebooks; a file adds its container.
  double bitrate_bps(int count) const;
  /// Frames that `samples` samples are coded in: ceil((samples + pre_skip) / samples_per_frame), 0 for none.
  std::int64_t frames_for(std::int64_t samples) const;
};

/// The tokens of one frame of one stream, valid during the call that hands it over.
struct Frame {
  std::int64_t index = 0;                     ///< from 0
  std::span<const std::int32_t> tokens = {};  ///< one per codebook, the first codebook first
};

struct LoadOptions {
  /// How large weights are kept; bf16 and i8 halve and quarter what a streaming step reads.
  WeightType weights = WeightType::f32;
  bool encoder = true;  ///< false: leave the encoder's weights out (decoding only)
  bool decoder = true;  ///< false: leave the decoder's weights out
};

struct StreamOptions {
  int codebooks = 0;  ///< encode with the first so many; 0: all
  int threads = 1;    ///< 0: as many as there are cores
  /// Longer pushes run in steps of so many frames: more is faster for files and takes more memory.
  int max_frames_per_step = 16;
};

using FrameSink = FunctionRef<void(const Frame&)>;
using PcmSink = FunctionRef<void(std::span<const float>)>;

class Encoder;
class Decoder;

/// A loaded codec: const and thread-safe. The shared_ptr keeps it alive as long as a stream uses it.
class Codec : public std::enable_shared_from_this<Codec> {
 public:
  /// Loads a weights file of any known family, in its published layout. Errors: io, format, unsupported,
  /// mismatch.
  static Result<std::shared_ptr<const Codec>> load(const std::string& path, const LoadOptions& options = {});
  /// The same from memory, which is not needed afterwards; `name` stands for the file name.
  static Result<std::shared_ptr<const Codec>> parse(std::span<const std::byte> file, const std::string& name,
                                                    const LoadOptions& options = {});
  /// The speech codec that is part of the library.
  static Result<std::shared_ptr<const Codec>> builtin(const LoadOptions& options = {});
  ~Codec();

  const CodecInfo& info() const;
  const Model& model() const { return *model_; }

  /// Opens a stream. Throws UsageError for a number of codebooks that the codec does not have.
  Encoder encoder(const StreamOptions& options = {}) const;
  Decoder decoder(const StreamOptions& options = {}) const;

 private:
  explicit Codec(std::unique_ptr<const Model> model);
  static Result<std::shared_ptr<const Codec>> wrap(Result<std::unique_ptr<Model>> model);

  std::unique_ptr<const Model> model_;
};

}  // namespace tessera

#include "codec/decoder.h"
#include "codec/encoder.h"
