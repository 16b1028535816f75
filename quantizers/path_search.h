// Residual quantization that follows several paths: the choice of a codeword also counts what later codebooks
// can make of the rest (multipath search; Chan et al. 1992, Barnes et al. 1996). The nearest codeword of each
// residual in turn is the special case of one path. Only encoding changes: any decoder reads the tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quantizers/codebook.h"

namespace tessera {

inline constexpr int kMaxSearchPaths = 64;

/// What search_paths() allocates.
std::size_t path_search_bytes(std::span<const Codebook> codebooks, int rows, int paths);

/// Tokens of latents [rows, dimension] with all `codebooks`: row r's at tokens[r * token_stride]. After each
/// codebook, the `paths` sums of codewords that are nearest to the latent live on; the nearest of the last
/// codebook wins; the lowest path, then the lowest index on a tie. The first codebook takes its nearest
/// codeword: what that one says does not depend on how many follow. A row's tokens depend on its latent
/// alone.
void search_paths(std::span<const Codebook> codebooks, int paths, const float* latents, int rows,
                  std::int32_t* tokens, std::ptrdiff_t token_stride, StepContext& context);

}  // namespace tessera
