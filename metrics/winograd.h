// Convolution 3 x 3 by minimal filtering, F(4 x 4, 3 x 3) of Lavin and Gray 2016: each tile of 4 x 4 outputs
// takes 36 products of matrices for the 144 of a direct convolution. For inference where a rounding error of
// some 1e-6 of the largest value does not matter; the layers of codecs stay direct, each output one chain.
#pragma once

#include <vector>

#include "core/autograd/tape.h"
#include "core/gemm.h"
#include "core/tensor.h"

namespace tessera::metrics {

/// relu(convolution + bias). Immutable: for any number of threads, each with its own tape.
class WinogradConvolution {
 public:
  WinogradConvolution() = default;
  /// `weights` [3, 3, C, O] and `bias` [O], C and O multiples of 16. Throws UsageError for other shapes.
  WinogradConvolution(const Tensor& weights, const Tensor& bias);

  /// x [1, H, W, C] -> [1, H', W, O]. A column of zeros stands at both sides; a row of zeros above where
  /// `pad_top`, below where `pad_bottom`; H' = H - 2 and one more for each. Throws UsageError for another
  /// shape.
  Tensor apply(Tape& tape, const Tensor& x, bool pad_top, bool pad_bottom) const;

 private:
  std::vector<PackedMatrix> points_;  // 36 of [C, O]
  Tensor bias_;
  std::int64_t inputs_ = 0, outputs_ = 0;
};

}  // namespace tessera::metrics
