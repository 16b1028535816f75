// Transposed copies, four columns of as many rows as a vector holds at a time, and the rows of packed panels.
// Only moves: the same on every target.
#include <algorithm>
#include <cstring>

#include "core/gemm_pack.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/gemm_pack_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target
#include "core/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;
using D = hn::CappedTag<float, kPanel>;
constexpr int kTile = 4;
constexpr int kLanes = hn::MaxLanes(D());  // rows of a tile: four at a time in each block of four lanes

// Four values of each of L / 4 rows: those of rows 0, 4, ...
template <class DL>
HWY_INLINE hn::Vec<DL> load_rows(DL d, const float* from, std::ptrdiff_t stride) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(DL()) > kTile) {
    const hn::Half<DL> half;
    constexpr std::ptrdiff_t kHalf = hn::MaxLanes(DL()) / 2;
    return hn::Combine(d, load_rows(half, from + kHalf * stride, stride), load_rows(half, from, stride));
  } else {
    return hn::LoadU(d, from);
  }
#else
  (void)stride;
  return hn::LoadU(d, from);
#endif
}

// kLanes rows x kTile columns.
HWY_INLINE void transpose_tile(const float* from, std::ptrdiff_t from_stride, float* to,
                               std::ptrdiff_t to_stride) {
  const D d;
  const hn::Repartition<double, D> pairs;
  const auto a = load_rows(d, from, from_stride), b = load_rows(d, from + from_stride, from_stride);
  const auto c = load_rows(d, from + 2 * from_stride, from_stride);
  const auto e = load_rows(d, from + 3 * from_stride, from_stride);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * to_stride);
}

}  // namespace

void Transpose(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows, std::ptrdiff_t columns,
               float* to, std::ptrdiff_t to_stride) {
  const std::ptrdiff_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kTile * kTile;
  // A line of `from` is read as a whole: rows that lie a power of two apart share few places in the cache.
  constexpr std::ptrdiff_t kLine = 16;
  for (std::ptrdiff_t begin = 0; begin < whole_columns; begin += kLine) {
    const std::ptrdiff_t end = std::min(begin + kLine, whole_columns);
    for (std::ptrdiff_t r = 0; r < whole_rows; r += kLanes) {
      for (std::ptrdiff_t c = begin; c < end; c += kTile) {
        transpose_tile(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
    for (std::ptrdiff_t r = whole_rows; r < rows; ++r) {
      for (std::ptrdiff_t c = begin; c < end; ++c) to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
  for (std::ptrdiff_t c = whole_columns; c < columns; ++c) {
    for (std::ptrdiff_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

void PackPanelRows(const PackedMatrix::Source& source, int begin, int end, int column, int n, float* to) {
  const int columns = std::min(kPanel, n - column);
  const float* const first = source.weights + column * source.column_stride;
  for (int i = begin; i < end;) {
    const int inside = i % source.inner;
    const int count = std::min(source.inner - inside, end - i);  // rows of one run
    const float* row = first + i / source.inner * source.outer_stride + inside * source.inner_stride;
    i += count;
    if (source.inner_stride == 1 && source.column_stride != 1) {
      if (columns < kPanel) std::fill_n(to, static_cast<std::ptrdiff_t>(count) * kPanel, 0.0f);
      Transpose(row, source.column_stride, columns, count, to, kPanel);
      to += static_cast<std::ptrdiff_t>(count) * kPanel;
      continue;
    }
    for (int j = 0; j < count; ++j, row += source.inner_stride, to += kPanel) {
      if (source.column_stride == 1 && columns == kPanel) {
        std::memcpy(to, row, kPanel * sizeof(float));
        continue;
      }
      for (int c = 0; c < columns; ++c) to[c] = row[c * source.column_stride];
      std::fill(to + columns, to + kPanel, 0.0f);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(Transpose);
HWY_EXPORT(PackPanelRows);

void transpose(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows, std::ptrdiff_t columns,
               float* to, std::ptrdiff_t to_stride) {
  HWY_DYNAMIC_DISPATCH(Transpose)(from, from_stride, rows, columns, to, to_stride);
}

void pack_panel_rows(const PackedMatrix::Source& source, int begin, int end, int column, int n, float* to) {
  HWY_DYNAMIC_DISPATCH(PackPanelRows)(source, begin, end, column, n, to);
}

}  // namespace tessera
#endif
