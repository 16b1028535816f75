// Residual vector quantization (SoundStream, Zeghidour et al. 2021) as it learns: each codebook codes what
// the ones before left, and the gradient of the sum goes straight through to the latents. Its runtime side is
// ResidualVq (quantizers/residual_vq.h), which gives the same bits.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "train/quantizers/quantizer_learner.h"

namespace tessera::train {

class ResidualVqLearner : public QuantizerLearner {
 public:
  /// With options.codebook_gradient, codewords are added to `parameters` as `<prefix><codebook>.codewords`.
  ResidualVqLearner(const QuantizerLearnerOptions& options, Parameters& parameters,
                    const std::string& prefix = "quantizer.")
      : QuantizerLearner(options, options.dimension, parameters, prefix) {}

  void initialize(const float* rows, int count, ThreadPool& pool) override;
  /// The gradient of `latents` and `first` with respect to z is that from above, unchanged. Losses are
  /// relative to the mean square of z (normalize_loss), which counts as constant.
  Quantized forward(Tape& tape, const Tensor& z, std::span<const int> active, bool collect) override;
  std::unique_ptr<const Quantizer> runtime() const override;
};

}  // namespace tessera::train
