// Vector quantizers: rows of latents to rows of tokens and back. Any first codebooks of an encoding decode by
// themselves. Const and stateless: a frame's tokens depend on its latent alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layer.h"

namespace tessera {

class Quantizer {
 public:
  virtual ~Quantizer() = default;

  /// Floats of a latent.
  virtual int dimension() const = 0;
  virtual int codebooks() const = 0;
  virtual int codebook_size(int codebook) const = 0;
  /// Upper bound of what encode and decode allocate for `rows` rows.
  virtual std::size_t workspace_bytes(int rows) const = 0;
  /// latents [rows, dimension] -> tokens [rows, count], with the first `count` codebooks.
  virtual void encode(const float* latents, int rows, int count, std::int32_t* tokens,
                      StepContext& context) const = 0;
  /// tokens [rows, count], all within their codebooks -> latents [rows, dimension].
  virtual void decode(const std::int32_t* tokens, int rows, int count, float* latents,
                      StepContext& context) const = 0;
};

/// Throws UsageError unless 1 <= count <= quantizer.codebooks().
void expect_codebooks(const Quantizer& quantizer, int count);

}  // namespace tessera
