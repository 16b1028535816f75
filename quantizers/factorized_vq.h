// Residual vector quantization with factorized codes, as in DAC (Kumar et al. 2023; the factorization is from
// ViT-VQGAN, Yu et al. 2022): each codebook looks at the residual through its own projection to a few
// dimensions, the search compares directions (both sides L2-normalized), and its codeword is projected back.
#pragma once

#include <span>
#include <vector>

#include "core/gemm.h"
#include "quantizers/codebook.h"
#include "quantizers/quantizer.h"

namespace tessera {

class FactorizedVq : public Quantizer {
 public:
  struct Level {
    PackedMatrix input;              ///< [dimension, code dimension]
    std::vector<float> input_bias;   ///< [code dimension]
    PackedMatrix output;             ///< [code dimension, dimension]
    std::vector<float> output_bias;  ///< [dimension]
    std::vector<float> codewords;    ///< [size, code dimension], as stored: not normalized
  };
  /// At least one level, all of one dimension.
  explicit FactorizedVq(std::vector<Level> levels);

  int dimension() const override { return levels_.front().input.k(); }
  int codebooks() const override { return static_cast<int>(levels_.size()); }
  int codebook_size(int codebook) const override;
  std::size_t workspace_bytes(int rows) const override;
  void encode(const float* latents, int rows, int count, std::int32_t* tokens,
              StepContext& context) const override;
  void decode(const std::int32_t* tokens, int rows, int count, float* latents,
              StepContext& context) const override;

 private:
  // latents += sign * output(codeword of each row)
  void accumulate(std::size_t level, const std::int32_t* tokens, int rows, int stride, float sign,
                  float* latents, StepContext& context) const;

  std::vector<Level> levels_;
  std::vector<Codebook> directions_;  // the normalized codewords
};

}  // namespace tessera
