// Convolutions over complex spectrograms at several resolutions: the MS-STFT discriminator of EnCodec
// (Défossez et al. 2022), with the split into frequency bands of DAC (Kumar et al. 2023) as an option. Left
// out: weight normalization (kernel.h), and, of the defaults, the papers' windows of 1024 and 2048 samples,
// for their cost.
#pragma once

#include <string>
#include <vector>

#include "train/discriminators/discriminator.h"
#include "train/discriminators/kernel.h"
#include "train/losses/spectrogram.h"
#include "train/parameters.h"

namespace tessera::train {

struct StftDiscriminatorConfig {
  std::vector<int> windows = {512, 256, 128};  ///< samples, 16 to 4096, multiples of 4; hops are a quarter
  int channels = 16;
  std::vector<int> dilations = {1, 2, 4};  ///< over frames, of the layers that halve the bins
  /// Upper edges of the bands as shares of half the sample rate, rising to at most 1, beyond which nothing
  /// is judged; each band has layers of its own, all share the last. DAC: 0.1, 0.25, 0.5, 0.75, 1.
  std::vector<double> bands = {1.0};
  bool compressed = false;  ///< see compression.h
};

class StftDiscriminator final : public Discriminator {
 public:
  /// Adds its parameters under `name`. Throws UsageError for a configuration that cannot work.
  StftDiscriminator(Parameters& parameters, const std::string& name,
                    const StftDiscriminatorConfig& config = {});

  /// x must be longer than half the largest window. One sub-discriminator per window; its features are the
  /// layers of each band in turn, [B, frames, bins', channels], its scores [B, frames, bins', 1].
  Judgement judge(Tape& tape, const Tensor& x, Mode mode = Mode::learning) const override;

 private:
  struct Band {
    int begin = 0, end = 0;  // bins
    std::vector<Kernel> kernels = {};
  };
  struct Resolution {
    Stft spectrum;
    std::vector<Band> bands = {};
    Kernel last = {};
  };
  std::vector<int> dilations_;
  bool compressed_;
  std::vector<Resolution> resolutions_;
};

}  // namespace tessera::train
