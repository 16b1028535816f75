// Matrix product for int8 weights with one scale per column. Each row of the left operand becomes integers of
// at most kLevels with one scale of its own; integer sums are exact, so their order is free, and the two
// scales are applied once, with a fixed order of roundings. Leaves out: weights without a scale of their own
// (asymmetric, grouped).
#include <algorithm>
#include <bit>
#include <limits>

#include "core/gemm_kernels.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/gemm_i8_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target
#include "core/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;
using DI = hn::CappedTag<std::int32_t, kPanel>;
using DF = hn::RebindToFloat<DI>;
using DS = hn::Repartition<std::int16_t, DI>;
using VI = hn::Vec<DI>;
constexpr int kLanes = hn::MaxLanes(DI());
constexpr int kVectors = kPanel / kLanes;  // per panel
constexpr int kMaxRows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 ? 4 : 2;
constexpr int kMaxPanels = HWY_TARGET == HWY_AVX3 ? 4 : 1;

// Rows of integers kept on the stack at a time: at least four of the longest.
constexpr int kQuantized = 4 * kMaxKOfI8;
constexpr float kLevels = 511;  // kLevels * 127 * kMaxKOfI8 fits an int32

// Adding and taking away 1.5 * 2^23 rounds to the nearest integer, ties to even, on every target alike; the
// low bits of the sum hold the integer.
constexpr float kRounder = 12582912;

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::int32_t, D>> magnitude_bits(D d, const float* x) {
  const hn::Rebind<std::int32_t, D> di;
  return hn::And(hn::BitCast(di, hn::LoadU(d, x)), hn::Set(di, 0x7fffffff));
}

// The largest magnitude of a row, as the bits of a float: they sort like integers, and NaN comes out on top.
std::int32_t largest_magnitude(const float* row, const GemmArgs& args, int length) {
  const DF d;
  VI most = hn::Zero(DI());
  std::int32_t result = 0;
  for (int s = 0; s < args.segments; ++s, row += args.segment_stride) {
    int i = 0;
    for (; i + kLanes <= length; i += kLanes) most = hn::Max(most, magnitude_bits(d, row + i));
    for (; i < length; ++i) result = std::max(result, std::bit_cast<std::int32_t>(row[i]) & 0x7fffffff);
  }
  HWY_ALIGN std::int32_t lanes[kLanes];
  hn::Store(most, DI(), lanes);
  return std::max(result, *std::max_element(lanes, lanes + kLanes));
}

// Writes the row as integers, padded to an even count, and returns what one step is worth. A row with an
// infinity or a NaN has no scale: zeros and NaN, which makes its outputs NaN.
float quantize_row(const float* row, const GemmArgs& args, std::int16_t* out) {
  const DF d;
  const hn::Rebind<std::int16_t, DF> d16;
  const int k = args.weights->k();
  const int length = k / args.segments;
  const std::int32_t bits = largest_magnitude(row, args, length);
  const float most = std::bit_cast<float>(bits);
  if (bits == 0 || bits >= 0x7f800000) {
    std::fill_n(out, k + k % 2, std::int16_t{0});
    return bits == 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  // Tiny rows are lifted by an exact power of two first: the inverse of a denormal would overflow.
  const float lift = most < 0x1p-100f ? 0x1p100f : 1.0f;
  const float inverse = kLevels / (most * lift);
  for (int s = 0; s < args.segments; ++s, row += args.segment_stride) {
    int i = 0;
    for (; i + kLanes <= length; i += kLanes, out += kLanes) {
      const auto scaled = hn::Mul(hn::Mul(hn::LoadU(d, row + i), hn::Set(d, lift)), hn::Set(d, inverse));
      const VI rounded = hn::BitCast(DI(), hn::Add(scaled, hn::Set(d, kRounder)));
      hn::StoreU(hn::DemoteTo(d16, hn::Sub(rounded, hn::BitCast(DI(), hn::Set(d, kRounder)))), d16, out);
    }
    for (; i < length; ++i) {
      const float rounded = row[i] * lift * inverse + kRounder;
      *out++ = static_cast<std::int16_t>(std::bit_cast<std::int32_t>(rounded) -
                                         std::bit_cast<std::int32_t>(kRounder));
    }
  }
  if (k % 2 != 0) *out = 0;
  return most / kLevels;
}

// Sums of R rows x P panels into sums[r][column], over pairs of k.
template <int R, int P>
void tile(const std::int16_t* x, int x_stride, const std::int8_t* weights, int pairs, std::int32_t* sums) {
  const DI d;
  const DS d16;
  const hn::Rebind<std::int8_t, DS> d8;
  constexpr int kWidth = P * kVectors;
  // Highway may leave the odd products in a second accumulator; on x86 it never does, and the compiler drops
  // it.
  VI even[R][kWidth], odd[R][kWidth];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kWidth; ++v) even[r][v] = odd[r][v] = hn::Zero(d);
  }
  const std::size_t panel_stride = static_cast<std::size_t>(pairs) * (2 * kPanel);
  for (int i = 0; i < pairs; ++i, weights += 2 * kPanel) {
    hn::Vec<DS> value[R];
    for (int r = 0; r < R; ++r) {
      std::int32_t pair;
      hwy::CopySameSize(reinterpret_cast<const std::int16_t(*)[2]>(x + r * x_stride + 2 * i), &pair);
      value[r] = hn::BitCast(d16, hn::Set(d, pair));
    }
    for (int v = 0; v < kWidth; ++v) {
      const std::int8_t* p =
          weights + static_cast<std::size_t>(v / kVectors) * panel_stride + v % kVectors * 2 * kLanes;
      const hn::Vec<DS> w = hn::PromoteTo(d16, hn::Load(d8, p));
      for (int r = 0; r < R; ++r)
        even[r][v] = hn::ReorderWidenMulAccumulate(d, value[r], w, even[r][v], odd[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kWidth; ++v) {
      hn::Store(hn::RearrangeToOddPlusEven(even[r][v], odd[r][v]), d, sums + r * P * kPanel + v * kLanes);
    }
  }
}

template <int P>
void tile_of_rows(int rows, const std::int16_t* x, int x_stride, const std::int8_t* weights, int pairs,
                  std::int32_t* sums) {
  if (rows == 1) return tile<1, P>(x, x_stride, weights, pairs, sums);
  if (rows == 2) return tile<2, P>(x, x_stride, weights, pairs, sums);
  if constexpr (kMaxRows == 4) {
    if (rows == 3) return tile<3, P>(x, x_stride, weights, pairs, sums);
    return tile<4, P>(x, x_stride, weights, pairs, sums);
  }
}

// start + sum * (scale of the row * scale of the column), for a whole panel.
void finish_panel(const std::int32_t* sums, float row_scale, const float* scales, const float* start,
                  float* out) {
  const DF d;
  for (int v = 0; v < kPanel; v += kLanes) {
    const auto scale = hn::Mul(hn::Set(d, row_scale), hn::Load(d, scales + v));
    const auto product = hn::Mul(hn::ConvertTo(d, hn::Load(DI(), sums + v)), scale);
    hn::StoreU(hn::Add(hn::LoadU(d, start + v), product), d, out + v);
  }
}

void finish(const GemmArgs& args, const std::int32_t* sums, float row_scale, int row, int panel) {
  static constexpr float kZeros[kPanel] = {};
  const int column = panel * kPanel;
  const int columns = std::min(kPanel, args.weights->n() - column);
  const float* scales = args.weights->scales() + column;
  float* out = args.out + row * args.out_stride + column;
  const float* start = args.start == GemmStart::output ? out
                       : args.start == GemmStart::bias ? args.bias + column
                                                       : kZeros;
  if (columns == kPanel) return finish_panel(sums, row_scale, scales, start, out);
  float copy[kPanel] = {};
  std::copy_n(start, columns, copy);
  finish_panel(sums, row_scale, scales, copy, copy);
  std::copy_n(copy, columns, out);
}

}  // namespace

void Int8(const GemmBlock& block) {
  const GemmArgs& args = *block.args;
  const int pairs = (args.weights->k() + 1) / 2;
  const int most_rows = kQuantized / (2 * pairs);
  alignas(64) std::int16_t x[kQuantized];
  alignas(64) std::int32_t sums[kMaxRows * kMaxPanels * kPanel];
  constexpr int kMostScales = 64;
  float scales[kMostScales];
  const int step = std::min(most_rows, kMostScales);
  for (int first = block.row_begin; first < block.row_end; first += step) {
    const int rows = std::min(step, block.row_end - first);
    for (int r = 0; r < rows; ++r) {
      scales[r] = quantize_row(args.rows[static_cast<std::size_t>(first + r)], args, x + r * 2 * pairs);
    }
    for (int panel = block.panel_begin, width; panel < block.panel_end; panel += width) {
      width = block.panel_end - panel >= kMaxPanels ? kMaxPanels : 1;
      const std::int8_t* weights =
          static_cast<const std::int8_t*>(args.weights->data()) +
          static_cast<std::size_t>(panel) * static_cast<std::size_t>(pairs) * (2 * kPanel);
      for (int row = 0, height; row < rows; row += height) {
        height = std::min(kMaxRows, rows - row);
        const auto run = width == kMaxPanels ? &tile_of_rows<kMaxPanels> : &tile_of_rows<1>;
        run(height, x + row * 2 * pairs, 2 * pairs, weights, pairs, sums);
        for (int r = 0; r < height; ++r) {
          for (int p = 0; p < width; ++p) {
            finish(args, sums + (r * width + p) * kPanel, scales[row + r], first + row + r, panel + p);
          }
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(Int8);

void gemm_i8(const GemmBlock& block) {
  HWY_DYNAMIC_DISPATCH(Int8)(block);
}

}  // namespace tessera
#endif
