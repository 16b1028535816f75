// Matrix product of bf16 operands with f32 sums, for training: the instruction of AVX512-BF16 multiplies two
// pairs and adds both products to a sum, at twice the rate of f32. Each output is one chain over pairs of k
// in increasing order, whatever the tiles and threads; but not the chain of core/gemm.h, and denormals count
// as zero: the same bits on CPUs that have the instruction, and nothing where they do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/gemm.h"

namespace tessera {

/// Whether this CPU has the instruction (and the kernels are not held to an older set, core/cpu.h). All else
/// here throws UsageError where it has not.
bool has_bf16_products();

/// Nearest bf16 values, ties to even; denormals become zero.
void round_to_bf16(const float* from, std::size_t count, std::uint16_t* to);

/// A right operand [k, n] rounded to bf16: panels of 16 columns; in each, pairs of k; in each, columns; in
/// each, the two values. Every segment of k starts a new pair; where its length is odd, zero fills the last.
class Bf16Matrix {
 public:
  static std::size_t elements_of(int k, int n, int segments);
  /// Packs into `memory`, aligned to 64 bytes, of elements_of() values, which must outlive the matrix. Shared
  /// out over the pool.
  static Bf16Matrix pack_into(std::uint16_t* memory, const PackedMatrix::Source& source, int k, int n,
                              int segments, ThreadPool& pool);

  int k() const { return k_; }
  int n() const { return n_; }
  int segments() const { return segments_; }
  int panels() const { return (n_ + PackedMatrix::kPanel - 1) / PackedMatrix::kPanel; }
  /// Pairs of k in one panel.
  int pairs() const { return segments_ * ((k_ / segments_ + 1) / 2); }
  const std::uint16_t* data() const { return data_; }

 private:
  int k_ = 0, n_ = 0, segments_ = 1;
  const std::uint16_t* data_ = nullptr;
};

/// As GemmArgs; rows need no alignment.
struct Bf16GemmArgs {
  std::span<const std::uint16_t* const> rows = {};
  int segments = 1;  ///< those of the weights
  std::ptrdiff_t segment_stride = 0;
  const Bf16Matrix* weights = nullptr;
  GemmStart start = GemmStart::zero;
  const float* bias = nullptr;
  float* out = nullptr;
  std::ptrdiff_t out_stride = 0;
};

/// Runs the product. Columns and rows are shared out over the pool. Throws UsageError on impossible
/// arguments.
void gemm_bf16(const Bf16GemmArgs& args, ThreadPool& pool);

}  // namespace tessera
