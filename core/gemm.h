// Matrix product with weights packed once at load: the arithmetic of every linear and convolution layer.
// Each output is one chain of fused multiply-adds over k in increasing order that starts from its initial
// value, so no tile size, batch, thread count or instruction set changes a bit (docs/determinism.md). Vector
// lanes run across output columns. The rows of the left operand are given by pointers, which makes strided,
// dilated, grouped and ragged convolutions the same product without im2col.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/thread_pool.h"

namespace tessera {

/// How weights are kept in memory.
enum class WeightType : std::uint8_t {
  f32,
  bf16,  ///< widened exactly to f32 in the product: the result equals an f32 product with the rounded weights
  i8,    ///< one scale per column; rows of the left operand are quantized to integers per row, sums are exact
         ///< in int32
};

/// A right operand [k, n], packed in panels of kPanel columns: panel-major, then k, then column.
class PackedMatrix {
 public:
  static constexpr int kPanel = 16;

  /// Where the weights are: element (i, j) at weights[i / inner * outer_stride + i % inner * inner_stride + j
  /// * column_stride]. Two levels of k hold a convolution's taps and channels without reordering them first.
  struct Source {
    const float* weights = nullptr;
    int inner = 1;  ///< divides k
    std::ptrdiff_t outer_stride = 0;
    std::ptrdiff_t inner_stride = 0;
    std::ptrdiff_t column_stride = 0;
  };

  PackedMatrix() = default;
  /// Packs a [k, n] matrix. Throws UsageError for sizes that cannot be, i8 with k above kMaxKOfI8 among them.
  static PackedMatrix pack(const Source& source, int k, int n, WeightType type);
  /// The same from element (i, j) at weights[i * row_stride + j * column_stride].
  static PackedMatrix pack(const float* weights, int k, int n, std::ptrdiff_t row_stride,
                           std::ptrdiff_t column_stride, WeightType type) {
    return pack({weights, k, 0, row_stride, column_stride}, k, n, type);
  }

  /// The same for f32 into `memory`, aligned to 64 bytes, of floats_of(k, n) floats, which must outlive the
  /// matrix: for weights that change at every step. Shared out over the pool.
  static PackedMatrix pack_into(float* memory, const Source& source, int k, int n, ThreadPool& pool);
  static std::size_t floats_of(int k, int n) {
    return static_cast<std::size_t>((n + kPanel - 1) / kPanel) * kPanel * static_cast<std::size_t>(k);
  }

  int k() const { return k_; }
  int n() const { return n_; }
  int panels() const { return (n_ + kPanel - 1) / kPanel; }
  WeightType type() const { return type_; }
  /// Bytes of the packed weights: what a pass over them reads.
  std::size_t bytes() const { return bytes_; }
  const void* data() const { return data_.get(); }
  /// i8 only: [panels * kPanel] scales.
  const float* scales() const { return scales_.get(); }

 private:
  int k_ = 0, n_ = 0;
  WeightType type_ = WeightType::f32;
  std::size_t bytes_ = 0;
  std::shared_ptr<void> data_;
  std::shared_ptr<float> scales_;
};

/// What the chain of an output starts from.
enum class GemmStart : std::uint8_t {
  zero,
  bias,    ///< bias[column]
  output,  ///< what `out` holds
};

/// out[m, :] = start + sum over s, i of rows[m][s * segment_stride + i] * W[s * (k / segments) + i, :]
struct GemmArgs {
  std::span<const float* const> rows = {};  ///< one pointer per output row; rows may overlap
  int segments = 1;                         ///< contiguous runs that make up a row's k values; divides k
  std::ptrdiff_t segment_stride = 0;        ///< floats from the start of one run to the next
  const PackedMatrix* weights = nullptr;
  GemmStart start = GemmStart::zero;
  const float* bias = nullptr;  ///< [n], for GemmStart::bias
  float* out = nullptr;         ///< row m at out + m * out_stride, n floats; must not overlap the rows
  std::ptrdiff_t out_stride = 0;
};

/// Runs the product. Columns and rows are shared out over the pool. Throws UsageError on impossible
/// arguments. Allocates nothing from the heap for any weight type.
void gemm(const GemmArgs& args, ThreadPool& pool);

}  // namespace tessera
