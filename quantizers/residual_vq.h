// Residual vector quantization (SoundStream, Zeghidour et al. 2021): every codebook codes what the ones
// before left; a latent is the sum of its codewords. And Mimi's split of it (Défossez et al. 2024).
#pragma once

#include <vector>

#include "core/gemm.h"
#include "quantizers/codebook.h"
#include "quantizers/quantizer.h"

namespace tessera {

class ResidualVq : public Quantizer {
 public:
  /// At least one codebook, all of one dimension. Encoding follows 1 to kMaxSearchPaths `paths`
  /// (path_search.h): with one, each codebook takes the codeword nearest to what is left.
  explicit ResidualVq(std::vector<Codebook> codebooks, int paths = 1);

  int dimension() const override { return codebooks_.front().dimension(); }
  int codebooks() const override { return static_cast<int>(codebooks_.size()); }
  int codebook_size(int codebook) const override {
    return codebooks_[static_cast<std::size_t>(codebook)].size();
  }
  std::size_t workspace_bytes(int rows) const override;
  void encode(const float* latents, int rows, int count, std::int32_t* tokens,
              StepContext& context) const override;
  void decode(const std::int32_t* tokens, int rows, int count, float* latents,
              StepContext& context) const override;

  /// As encode and decode, for tokens that stand among others: row r's at tokens[r * token_stride].
  void encode_strided(const float* latents, int rows, int count, std::int32_t* tokens,
                      std::ptrdiff_t token_stride, StepContext& context) const;
  void decode_strided(const std::int32_t* tokens, std::ptrdiff_t token_stride, int rows, int count,
                      float* latents) const;

 private:
  std::vector<Codebook> codebooks_;
  int paths_;
};

/// Two residual quantizers side by side, each with its own linear projections in and out (no bias): the
/// first, of semantic codebooks, and the second, of acoustic ones, both code the same latent; their outputs
/// are added.
class SplitResidualVq : public Quantizer {
 public:
  struct Half {
    ResidualVq quantizer;
    PackedMatrix input;   ///< [dimension, codebook dimension]
    PackedMatrix output;  ///< [codebook dimension, dimension]
  };
  SplitResidualVq(Half semantic, Half acoustic);

  int dimension() const override { return semantic_.input.k(); }
  int codebooks() const override { return semantic_.quantizer.codebooks() + acoustic_.quantizer.codebooks(); }
  int codebook_size(int codebook) const override;
  std::size_t workspace_bytes(int rows) const override;
  void encode(const float* latents, int rows, int count, std::int32_t* tokens,
              StepContext& context) const override;
  void decode(const std::int32_t* tokens, int rows, int count, float* latents,
              StepContext& context) const override;

 private:
  Half semantic_, acoustic_;
};

}  // namespace tessera
