// Google's speech embedding (Lin, Kilgour, Roblek, Sharifi 2020: "Training keyword spotters with limited and
// synthesized speech data"; TF Hub speech_embedding/1): 20 small convolutions over 32 mel bands, one
// 96-vector per 80 ms, a window of 76 mel frames each. It gives the numbers of the published network. Leaves
// out: streaming, and gradients to its input (a teacher needs none).
#pragma once

#include <memory>
#include <vector>

#include "core/safetensors.h"
#include "train/teachers/teacher.h"

namespace tessera::train {

struct SpeechEmbeddingOptions {
  /// Raises mel values to 80 dB below the loudest of all that are seen at once, as the original does. It
  /// needs the whole recording: without it, features of a crop are those of the recording to the bit.
  bool floor = true;
};

class SpeechEmbedding : public Teacher {
 public:
  static constexpr int kDimension = 96, kBands = 32;
  static constexpr int kSampleRate = 16000;
  static constexpr int kFrame = 1280;                    ///< samples per embedding: 12.5 Hz
  static constexpr int kMelWindow = 512, kMelHop = 160;  ///< samples that a mel frame reads, and its step
  static constexpr int kContext = 76, kContextHop = 8;   ///< mel frames that an embedding reads, and its step
  static constexpr int kWindow = (kContext - 1) * kMelHop + kMelWindow;  ///< 12512 samples
  /// An embedding is most sensitive to sample 7692 of its window, which is to lie in the middle of its frame:
  /// so many samples come before the frame.
  static constexpr int kLead = 7692 - kFrame / 2;

  /// From the folder that holds speech_embedding.safetensors, or from that file: conv00.weight [kernel in
  /// time, kernel in frequency, C_in, C_out] to conv19.weight, conv00.bias to conv18.bias, mel.window [512],
  /// mel.matrix [257, 32]. Errors: those of SafeTensors::open; mismatch for a tensor that is missing or has
  /// another shape.
  static Result<std::unique_ptr<SpeechEmbedding>> load(const std::string& path,
                                                       const SpeechEmbeddingOptions& options = {});
  static Result<std::unique_ptr<SpeechEmbedding>> load(const SafeTensors& file,
                                                       const SpeechEmbeddingOptions& options = {});

  int dimension() const override { return kDimension; }
  int sample_rate_hz() const override { return kSampleRate; }
  double frame_rate_hz() const override { return static_cast<double>(kSampleRate) / kFrame; }
  /// Errors: format for a sample that is not finite.
  Result<Tensor> features(const std::string& name, std::span<const float> pcm,
                          ThreadPool& pool) const override;

  /// The same for samples `begin` to `begin + length` of a recording: [ceil(length / 1280), 96], row j
  /// centred on samples begin + 1280 j to begin + 1280 j + 1279. What lies before and after is read from the
  /// recording, zeros beyond its ends (`begin` may be negative).
  Tensor features(std::span<const float> recording, std::int64_t begin, std::int64_t length,
                  ThreadPool& pool) const;

  /// Samples in [-1, 1), N >= 512 -> [(N - 512) / 160 + 1, 32], frame i from samples 160 i to 160 i + 511.
  Tensor mel(std::span<const float> pcm, ThreadPool& pool) const;
  /// mel [F, 32], F >= 76 -> [(F - 76) / 8 + 1, 96], row k from frames 8 k to 8 k + 75.
  Tensor embed(const Tensor& mel, ThreadPool& pool) const;

 private:
  struct Layer {
    Tensor weight, bias;  // bias undefined in the last one
  };

  SpeechEmbedding() = default;
  Result<void> load_front_end(const SafeTensors& file);
  Result<void> load_network(const SafeTensors& file);

  SpeechEmbeddingOptions options_;
  int first_tap_ = 0;  // of the window that is not zero
  Tensor basis_;       // [taps, 1, 2 bins]: window times cosine, then times -sine
  Tensor bands_;       // [2 bins, 32]: the mel matrix for squared real parts, then for squared imaginary ones
  std::vector<Layer> layers_;
};

}  // namespace tessera::train
