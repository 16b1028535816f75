// The multi-period discriminator of HiFi-GAN (Kong et al. 2020): the signal dealt out to p phases, each
// judged by the same strided convolutions over time, for several p. Left out: weight normalization
// (kernel.h).
#pragma once

#include <string>
#include <vector>

#include "train/discriminators/discriminator.h"
#include "train/discriminators/kernel.h"
#include "train/parameters.h"

namespace tessera::train {

struct PeriodDiscriminatorConfig {
  std::vector<int> periods = {2, 3, 5, 7, 11};  ///< samples
  int channels = 16;                            ///< of the first layer; the next have 2, 4, 4, ... times
  int layers = 4;                               ///< of kernel 5, stride 3
};

class PeriodDiscriminator final : public Discriminator {
 public:
  /// Adds its parameters under `name`. Throws UsageError for a configuration that cannot work.
  PeriodDiscriminator(Parameters& parameters, const std::string& name,
                      const PeriodDiscriminatorConfig& config = {});

  /// x must have a sample for each phase. One sub-discriminator per period p; its features are [B p, time,
  /// channels], its scores [B p, time, 1].
  Judgement judge(Tape& tape, const Tensor& x, Mode mode = Mode::learning) const override;

 private:
  struct Period {
    int length = 0;
    std::vector<Kernel> kernels = {};
    Kernel last = {};
  };
  std::vector<Period> periods_;
};

}  // namespace tessera::train
