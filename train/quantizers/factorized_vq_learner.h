// Residual quantization with factorized codes as it learns (DAC, Kumar et al. 2023; ViT-VQGAN, Yu et al.
// 2022): each codebook sees the residual through its own projection to a few dimensions, compares directions,
// and its codeword is projected back. Its runtime side is FactorizedVq (quantizers/factorized_vq.h), which
// gives the same bits. Leaves out DAC's weight normalization of the projections.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/quantizers/quantizer_learner.h"

namespace tessera::train {

class FactorizedVqLearner : public QuantizerLearner {
 public:
  /// Adds `<prefix><codebook>.input.weight` [D, d], `.input.bias` [d], `.output.weight` [d, D] and
  /// `.output.bias` [D] to `parameters`, d being `code_dimension`, and with options.codebook_gradient, the
  /// codewords. Products are always f32: their gradients, too, should the tape multiply in bf16 later.
  FactorizedVqLearner(const QuantizerLearnerOptions& options, Parameters& parameters,
                      const std::string& prefix = "quantizer.", int code_dimension = 8);

  void initialize(const float* rows, int count, ThreadPool& pool) override;
  /// Gradients reach z through the projections of all levels: each codeword passes its own straight to the
  /// code that it stands for. With moving averages the code is of unit length, and codewords are means of
  /// such. Losses compare codes with codewords, relative to the codes' mean square (normalize_loss), which
  /// counts as constant.
  Quantized forward(Tape& tape, const Tensor& z, std::span<const int> active, bool collect) override;
  std::unique_ptr<const Quantizer> runtime() const override;

 private:
  struct Level {
    Tensor input, input_bias, output, output_bias;
  };
  /// The code that `codebook` quantizes, from a residual [..., D]: [..., d].
  Tensor code_of(Tape& tape, int codebook, const Tensor& residual) const;
  /// Codewords of the indices, 0 for those below 0: of the shape.
  Tensor look_up(Tape& tape, int codebook, std::span<const std::int32_t> indices, const Shape& shape) const;

  std::vector<Level> levels_;
};

}  // namespace tessera::train
