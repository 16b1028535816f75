// Finite scalar quantization (Mentzer et al. 2023): every dimension of a latent is squashed into a range and
// rounded to one of a few levels; the levels of all dimensions together are one token. No codebook is stored.
#pragma once

#include <vector>

#include "quantizers/quantizer.h"

namespace tessera {

class Fsq : public Quantizer {
 public:
  /// Levels per dimension, each at least 2; their product, the size of the one codebook, at most 2^24.
  explicit Fsq(std::vector<int> levels);

  int dimension() const override { return static_cast<int>(levels_.size()); }
  int codebooks() const override { return 1; }
  int codebook_size(int) const override { return size_; }
  std::size_t workspace_bytes(int rows) const override;
  /// Token = sum over i of digit[i] * product of the levels before i, digit[i] from 0 to levels[i] - 1.
  void encode(const float* latents, int rows, int count, std::int32_t* tokens,
              StepContext& context) const override;
  /// Values (digit - floor(levels / 2)) / floor(levels / 2), from -1 to 1.
  void decode(const std::int32_t* tokens, int rows, int count, float* latents,
              StepContext& context) const override;

 private:
  std::vector<int> levels_;
  std::vector<float> half_, offset_, shift_;  // z -> tanh(z + shift) * half - offset, then rounded
  int size_ = 1;
};

}  // namespace tessera
