// The two sums that everything in reduce.h is made of, of x or of the products x y: along rows and down
// columns. Fixed blocks and a fixed order of blocks, so any number of threads gives the same bits. Nothing is
// recorded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/autograd/tape.h"

namespace tessera::ops {

/// x as `rows` rows -> [rows]: the sum of each; of x y if y is defined. By fixed_sum (fixed_dot) over blocks
/// of 4096 elements, then in the same way over the sums of the blocks.
Tensor row_sums(Tape& tape, const Tensor& x, const Tensor& y, std::int64_t rows);

/// x as rows of `channels` elements -> [channels]: the sum of all rows; of x y if y is defined. Blocks of 256
/// rows, each added up in order, then the sums of the blocks in the same way.
Tensor column_sums(Tape& tape, const Tensor& x, const Tensor& y, std::int64_t channels);

/// sums[c] = the sum over t of x[t * stride + c] (times y[...] if y is not null), in order of t; rows >= 1.
void column_sums_block(const float* x, const float* y, std::size_t rows, std::size_t stride,
                       std::size_t channels, float* sums);

}  // namespace tessera::ops
