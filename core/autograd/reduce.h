// Sums and what is made of them, with gradients. Sums over everything go by fixed blocks and a fixed tree,
// rows by fixed_sum (core/norm.h): any number of threads gives the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/tape.h"

namespace tessera::ops {

/// Of all elements, as [1].
Tensor sum(Tape& tape, const Tensor& x);
Tensor mean(Tape& tape, const Tensor& x);
/// x [M, ...] -> [M]: the sum of each item of the first axis.
Tensor sum_items(Tape& tape, const Tensor& x);
/// x [..., C] -> [...] (rank one less; [1] from rank 1): the sum of each row.
Tensor sum_last(Tape& tape, const Tensor& x);
/// x [..., C] -> [C]: the sum over all rows, as the gradient of a bias needs it.
Tensor sum_rows(Tape& tape, const Tensor& x);
/// x / sqrt(|x|^2 + eps) for each row of the last axis.
Tensor l2_normalize(Tape& tape, const Tensor& x, float eps = 1e-12f);
/// LayerNorm over the last axis, then times weight [C] plus bias [C].
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps = 1e-5f);
/// Softmax over the last axis.
Tensor softmax(Tape& tape, const Tensor& x);
/// Mean over the rows of logits [M, K] of -log softmax at `targets` (M of them, 0 to K - 1; -1 leaves a row
/// out; 0 if all are): [1].
Tensor cross_entropy(Tape& tape, const Tensor& logits, std::span<const std::int32_t> targets);

}  // namespace tessera::ops
