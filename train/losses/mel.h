// Mel filterbanks: overlapping triangles over the bins of a spectrum, evenly spaced on a mel scale, applied
// on the tape. Two scales: HTK's formula, and that of Slaney's Auditory Toolbox (1998), linear up to 1 kHz.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/tape.h"

namespace tessera::train {

enum class MelScale : std::uint8_t {
  slaney,  ///< 3 f / 200 up to 1000 Hz, then 15 + 27 ln(f / 1000) / ln 6.4
  htk,     ///< 2595 log10(1 + f / 700)
};
double hz_to_mel(MelScale scale, double hz);
double mel_to_hz(MelScale scale, double mel);

struct MelOptions {
  int sample_rate_hz = 16000;
  int window = 1024;  ///< samples of the transform: window / 2 + 1 bins
  int mels = 80;
  double lowest_hz = 0, highest_hz = 0;  ///< outer feet of the triangles; highest_hz 0: half the sample rate
  MelScale scale = MelScale::slaney;
  bool unit_area = true;  ///< triangles of height 2 / width in Hz (Slaney); otherwise of height 1
};

class MelFilterbank {
 public:
  /// Throws UsageError for options that cannot work; among them so many mels that a triangle lies between two
  /// bins, where it would be 0 for every sound.
  explicit MelFilterbank(const MelOptions& options);

  /// spectrum [..., bins] -> [..., mels], of whatever is in it: powers or magnitudes.
  Tensor operator()(Tape& tape, const Tensor& spectrum) const;

  int bins() const { return bins_; }
  int mels() const { return static_cast<int>(filters_->size()); }
  /// What bin `bin` counts in `mel`.
  float weight(int mel, int bin) const;

  /// A triangle: its weights for bins `begin` on.
  struct Filter {
    int begin = 0;
    std::vector<float> weights = {};
  };

 private:
  int bins_ = 0;
  std::shared_ptr<const std::vector<Filter>> filters_;
};

}  // namespace tessera::train
