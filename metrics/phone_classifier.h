// Which phone each 10 ms of a sound most likely are: a small network over log-mel spectra that was trained by
// tools/bench/phone_train.cpp (models/phone_classifier.md). A yardstick for codecs, not a recognizer: it has
// no words and no grammar, and hears 100 ms to either side.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/tape.h"
#include "core/result.h"
#include "core/safetensors.h"

namespace tessera::metrics {

/// What it sees: powers of mel bands, [frames, kPhoneBands], a frame for every whole 10 ms.
constexpr int kPhoneRateHz = 16000, kPhoneHop = 160, kPhoneBands = 40;
/// Frames before and after one that have a part in its answer.
constexpr int kPhoneContext = 10;

/// Of a sound at kPhoneRateHz: Hann windows of 25 ms around the middle of each frame, zeros beyond the ends.
std::vector<float> phone_mel_powers(std::span<const float> sound);
/// Logarithms over a floor 50 dB below the mean power, less the mean of each band over the sound, halved:
/// neither level nor a fixed equalizer matters. With kPhoneContext rows of zeros at either end.
std::vector<float> phone_features(std::span<const float> powers);

/// A convolution over time: weights [taps, inputs, outputs]; all but the first and the last add their input
/// to their output.
struct PhoneLayer {
  std::string name = {};
  Shape shape = {};
  int dilation = 1;
  Tensor weights = {}, bias = {};
};
/// Without weights.
std::vector<PhoneLayer> phone_layers(int classes);
/// x [B, T + 2 kPhoneContext, kPhoneBands] -> [B, T, classes], before softmax.
Tensor phone_logits(Tape& tape, Tensor x, std::span<const PhoneLayer> layers);

/// Immutable: for any number of threads, each with its own pool.
class PhoneClassifier {
 public:
  /// The one that is linked in (models/builtin.h).
  static Result<PhoneClassifier> builtin();
  /// A file of `<layer>.weight` and `<layer>.bias` with the names of the classes as text under "phones",
  /// parted by spaces, silence first. Errors: mismatch (no names, a tensor that is not there or has another
  /// shape).
  static Result<PhoneClassifier> load(const SafeTensors& file);

  /// Names of the classes; the first is silence.
  const std::vector<std::string>& phones() const { return phones_; }
  int classes() const { return static_cast<int>(phones_.size()); }
  /// Of the file.
  const std::string& hash() const { return hash_; }

  /// For a sound at kPhoneRateHz: [frames, classes], frame i being that of samples 160 i to 160 i + 159. The
  /// same bits on every machine. Errors: those of check_sound; usage (another rate); format (shorter than a
  /// frame).
  Result<Tensor> logits(std::span<const float> sound, int sample_rate_hz, ThreadPool& pool) const;

 private:
  std::vector<std::string> phones_;
  std::string hash_;
  std::vector<PhoneLayer> layers_;
};

}  // namespace tessera::metrics
