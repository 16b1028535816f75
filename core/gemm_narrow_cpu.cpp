// Matrix product for one or two output columns (the last convolution of a decoder): a panel would waste most
// of its lanes, so lanes run across rows. Rows come in groups, transposed four k at a time in registers; each
// output is the same single chain over k as in gemm_panels_cpu.cpp. Leaves out: i8 weights.
#include <algorithm>

#include "core/gemm_kernels.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/gemm_narrow_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target
#include "core/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());
// Groups of rows at a time: independent chains that hide the latency of one.
constexpr int kGroups = kLanes == 4 ? 4 : 2;
constexpr int kRows = kGroups * kLanes;

HWY_INLINE float weight(float w) {
  return w;
}
HWY_INLINE float weight(std::uint16_t w) {
  return hwy::F32FromBF16(hwy::bfloat16_t{w});
}

// Four values of each of L / 4 rows: those of rows[0], rows[4], ...
template <class DL>
HWY_INLINE hn::Vec<DL> load_rows(DL d, const float* const* rows, std::ptrdiff_t i) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(DL()) > 4) {
    const hn::Half<DL> half;
    return hn::Combine(d, load_rows(half, rows + hn::MaxLanes(half), i), load_rows(half, rows, i));
  } else {
    return hn::LoadU(d, rows[0] + i);
  }
#else
  return hn::LoadU(d, rows[0] + i);
#endif
}

// x[q][lane] = rows[lane][i + q], q = 0..3.
HWY_INLINE void load_transposed(const float* const* rows, std::ptrdiff_t i, V x[4]) {
  const D d;
  const hn::Repartition<std::uint64_t, D> d64;
  const V a = load_rows(d, rows, i), b = load_rows(d, rows + 1, i);
  const V c = load_rows(d, rows + 2, i), e = load_rows(d, rows + 3, i);
  const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  x[0] = hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low));
  x[1] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low));
  x[2] = hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high));
  x[3] = hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high));
}

// kRows chains per column over all of k; sums[column][row] holds their starts, then their ends.
template <class T, int N>
void rows_of_columns(const float* const* rows, const GemmArgs& args, float (*sums)[kRows]) {
  const D d;
  V sum[N][kGroups];
  for (int n = 0; n < N; ++n) {
    for (int g = 0; g < kGroups; ++g) sum[n][g] = hn::Load(d, sums[n] + g * kLanes);
  }
  const T* w = static_cast<const T*>(args.weights->data());
  const int length = args.weights->k() / args.segments;
  for (int s = 0; s < args.segments; ++s) {
    const std::ptrdiff_t offset = s * args.segment_stride;
    int i = 0;
    for (; i + 4 <= length; i += 4, w += 4 * kPanel) {
      for (int g = 0; g < kGroups; ++g) {
        V x[4];
        load_transposed(rows + g * kLanes, offset + i, x);
        for (int q = 0; q < 4; ++q) {
          for (int n = 0; n < N; ++n)
            sum[n][g] = Fma(d, x[q], hn::Set(d, weight(w[q * kPanel + n])), sum[n][g]);
        }
      }
    }
    for (; i < length; ++i, w += kPanel) {
      for (int g = 0; g < kGroups; ++g) {
        HWY_ALIGN float x[kLanes];
        for (int r = 0; r < kLanes; ++r) x[r] = rows[g * kLanes + r][offset + i];
        for (int n = 0; n < N; ++n) sum[n][g] = Fma(d, hn::Load(d, x), hn::Set(d, weight(w[n])), sum[n][g]);
      }
    }
  }
  for (int n = 0; n < N; ++n) {
    for (int g = 0; g < kGroups; ++g) hn::Store(sum[n][g], d, sums[n] + g * kLanes);
  }
}

template <class T>
void all_rows(const GemmBlock& block) {
  const GemmArgs& args = *block.args;
  const int columns = args.weights->n();
  for (int first = block.row_begin; first < block.row_end; first += kRows) {
    const int count = std::min(kRows, block.row_end - first);
    const float* rows[kRows];
    alignas(64) float sums[kNarrowColumns][kRows] = {};
    // Lanes without a row repeat the last one.
    for (int r = 0; r < kRows; ++r)
      rows[r] = args.rows[static_cast<std::size_t>(first + std::min(r, count - 1))];
    float* out = args.out + first * args.out_stride;
    for (int n = 0; n < columns; ++n) {
      for (int r = 0; r < count; ++r) {
        if (args.start == GemmStart::bias) sums[n][r] = args.bias[n];
        if (args.start == GemmStart::output) sums[n][r] = out[r * args.out_stride + n];
      }
    }
    if (columns == 1) {
      rows_of_columns<T, 1>(rows, args, sums);
    } else {
      rows_of_columns<T, 2>(rows, args, sums);
    }
    for (int r = 0; r < count; ++r) {
      for (int n = 0; n < columns; ++n) out[r * args.out_stride + n] = sums[n][r];
    }
  }
}

}  // namespace

void Narrow(const GemmBlock& block) {
  if (block.args->weights->type() == WeightType::bf16) {
    all_rows<std::uint16_t>(block);
  } else {
    all_rows<float>(block);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(Narrow);

void gemm_narrow(const GemmBlock& block) {
  HWY_DYNAMIC_DISPATCH(Narrow)(block);
}

}  // namespace tessera
#endif
