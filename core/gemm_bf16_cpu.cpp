// Kernels of the bf16 product for AVX512-BF16: register tiles of R rows x P panels over blocks of k, as in
// gemm_panels_cpu.cpp. Highway has no target with this instruction alone, so these are intrinsics of one
// instruction set; on other machines cpu_has_bf16() says no and nothing else is called.
#include "core/gemm_bf16_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

// Every function with vectors needs it: attributes are not inherited.
#define TESSERA_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace tessera {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;
// Sums that hide the latency of the instruction and leave room for the weights and one pair, of 32 registers.
constexpr int kSums = 24;
constexpr int kMaxPanels = 4, kMaxRows = 12;
// Values of k whose weights, for a tile's panels, stay in the first-level cache while rows pass.
constexpr int kBlockK = 320;

constexpr int max_rows(int panels) {
  return std::min(kSums / panels, kMaxRows);
}

// A stretch of k: `segments` runs of `length` values each, the first `offset` values after a row's pointer.
struct Stretch {
  std::ptrdiff_t offset = 0, stride = 0;
  int segments = 0, length = 0;
};

// Where chains start and end: row r of the tile at + r * stride. The last panel may be partly filled.
struct Ends {
  const float* start = nullptr;  // null: zero
  std::ptrdiff_t start_stride = 0;
  float* out = nullptr;
  std::ptrdiff_t out_stride = 0;
  __mmask16 last = 0;
};

using Tile = void (*)(const std::uint16_t* const* rows, const Stretch& stretch, const std::uint16_t* weights,
                      std::size_t panel_stride, const Ends& ends);

template <int R, int P>
TESSERA_BF16 void tile(const std::uint16_t* const* rows, const Stretch& stretch, const std::uint16_t* weights,
                       std::size_t panel_stride, const Ends& ends) {
  __m512 sum[R][P];
  const std::uint16_t* x[R];
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) {
      sum[r][p] = ends.start == nullptr
                      ? _mm512_setzero_ps()
                      : _mm512_maskz_loadu_ps(p + 1 < P ? __mmask16{0xffff} : ends.last,
                                              ends.start + r * ends.start_stride + p * kPanel);
    }
    x[r] = rows[r] + stretch.offset;
  }
  const int pairs = stretch.length / 2;
  for (int s = 0; s < stretch.segments; ++s) {
    for (int i = 0; i < pairs; ++i, weights += 2 * kPanel) {
      __m512bh w[P];
      for (int p = 0; p < P; ++p)
        w[p] = (__m512bh)_mm512_load_si512(weights + static_cast<std::size_t>(p) * panel_stride);
      for (int r = 0; r < R; ++r) {
        int pair;
        std::memcpy(&pair, x[r] + 2 * i, sizeof(pair));
        const __m512bh value = (__m512bh)_mm512_set1_epi32(pair);
        for (int p = 0; p < P; ++p) sum[r][p] = _mm512_dpbf16_ps(sum[r][p], value, w[p]);
      }
    }
    if (stretch.length % 2 != 0) {
      __m512bh w[P];
      for (int p = 0; p < P; ++p)
        w[p] = (__m512bh)_mm512_load_si512(weights + static_cast<std::size_t>(p) * panel_stride);
      weights += 2 * kPanel;
      for (int r = 0; r < R; ++r) {
        const __m512bh value = (__m512bh)_mm512_set1_epi32(x[r][stretch.length - 1]);
        for (int p = 0; p < P; ++p) sum[r][p] = _mm512_dpbf16_ps(sum[r][p], value, w[p]);
      }
    }
    for (int r = 0; r < R; ++r) x[r] += stretch.stride;
  }
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) {
      _mm512_mask_storeu_ps(ends.out + r * ends.out_stride + p * kPanel,
                            p + 1 < P ? __mmask16{0xffff} : ends.last, sum[r][p]);
    }
  }
}

template <int R, int P>
constexpr Tile tile_if_it_fits() {
  if constexpr (R <= max_rows(P)) return &tile<R, P>;
  return nullptr;
}

template <int P>
Tile tile_of_rows(int rows) {
  constexpr Tile kTiles[kMaxRows] = {
      tile_if_it_fits<1, P>(), tile_if_it_fits<2, P>(),  tile_if_it_fits<3, P>(),  tile_if_it_fits<4, P>(),
      tile_if_it_fits<5, P>(), tile_if_it_fits<6, P>(),  tile_if_it_fits<7, P>(),  tile_if_it_fits<8, P>(),
      tile_if_it_fits<9, P>(), tile_if_it_fits<10, P>(), tile_if_it_fits<11, P>(), tile_if_it_fits<12, P>()};
  return kTiles[rows - 1];
}

Tile tile_of(int rows, int panels) {
  if (panels == 4) return tile_of_rows<4>(rows);
  return panels == 2 ? tile_of_rows<2>(rows) : tile_of_rows<1>(rows);
}

// One rectangle over one stretch of k, whose weights start at pair `pair` of a panel.
void multiply_stretch(const Bf16Block& block, const Stretch& stretch, int pair) {
  const Bf16GemmArgs& args = *block.args;
  const std::size_t panel_stride = static_cast<std::size_t>(args.weights->pairs()) * 2 * kPanel;
  for (int panel = block.panel_begin, width; panel < block.panel_end; panel += width) {
    width = kMaxPanels;
    while (width > block.panel_end - panel) width /= 2;
    const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(panel) * kPanel;
    const std::uint16_t* weights = args.weights->data() + static_cast<std::size_t>(panel) * panel_stride +
                                   static_cast<std::size_t>(pair) * 2 * kPanel;
    const int last = std::min(args.weights->n() - (panel + width - 1) * kPanel, kPanel);
    const int tiles = (block.rows() + max_rows(width) - 1) / max_rows(width);
    for (int t = 0, row = block.row_begin; t < tiles; ++t) {  // of nearly equal height
      const int rows = (block.row_end - row + tiles - t - 1) / (tiles - t);
      Ends ends;
      ends.out = args.out + row * args.out_stride + column;
      ends.out_stride = args.out_stride;
      ends.last = static_cast<__mmask16>((1u << last) - 1);
      if (pair > 0 || args.start == GemmStart::output) {
        ends.start = ends.out;
        ends.start_stride = ends.out_stride;
      } else if (args.start == GemmStart::bias) {
        ends.start = args.bias + column;
      }
      tile_of(rows, width)(args.rows.data() + row, stretch, weights, panel_stride, ends);
      row += rows;
    }
  }
}

}  // namespace

bool cpu_has_bf16() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16");
  return has;
}

TESSERA_BF16 void round_to_bf16_cpu(const float* from, std::size_t count, std::uint16_t* to) {
  constexpr std::size_t kStep = 32;
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m512 low = _mm512_loadu_ps(from + i), high = _mm512_loadu_ps(from + i + 16);
    _mm512_storeu_si512(to + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
  for (; i < count; i += 16) {
    const std::size_t left = std::min<std::size_t>(count - i, 16);
    const auto mask = static_cast<__mmask16>((1u << left) - 1);
    const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i));
    _mm256_mask_storeu_epi16(to + i, mask, rounded);
  }
}

TESSERA_BF16 void pair_rows_bf16(const float* rows, int pairs, std::uint16_t* to) {
  alignas(64) std::uint16_t order[2 * kPanel];
  for (int c = 0; c < kPanel; ++c) {
    order[2 * c] = static_cast<std::uint16_t>(c);
    order[2 * c + 1] = static_cast<std::uint16_t>(c + kPanel);
  }
  const __m512i side_by_side = _mm512_load_si512(order);
  for (int i = 0; i < pairs; ++i, rows += 2 * kPanel, to += 2 * kPanel) {
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_load_ps(rows + kPanel), _mm512_load_ps(rows));
    _mm512_store_si512(to, _mm512_permutexvar_epi16(side_by_side, (__m512i)both));
  }
}

void gemm_bf16_block(const Bf16Block& block) {
  const Bf16GemmArgs& args = *block.args;
  const int segments = args.weights->segments(), length = args.weights->k() / segments;
  const int segment_pairs = (length + 1) / 2;
  if (length <= kBlockK) {
    const int step = kBlockK / length;
    for (int s = 0; s < segments; s += step) {
      multiply_stretch(block,
                       {s * args.segment_stride, args.segment_stride, std::min(step, segments - s), length},
                       s * segment_pairs);
    }
    return;
  }
  const int parts = (length + kBlockK - 1) / kBlockK;           // of nearly equal length
  const int part = ((length + parts - 1) / parts + 1) / 2 * 2;  // even: pairs stay together
  for (int s = 0; s < segments; ++s) {
    for (int i = 0; i < length; i += part) {
      multiply_stretch(block, {s * args.segment_stride + i, 0, 1, std::min(part, length - i)},
                       s * segment_pairs + i / 2);
    }
  }
}

}  // namespace tessera

#else

#include "core/error.h"

namespace tessera {
namespace {

[[noreturn]] void absent() {
  fail("gemm_bf16", "a CPU with AVX512-BF16", "another");
}

}  // namespace

bool cpu_has_bf16() {
  return false;
}
void round_to_bf16_cpu(const float*, std::size_t, std::uint16_t*) {
  absent();
}
void pair_rows_bf16(const float*, int, std::uint16_t*) {
  absent();
}
void gemm_bf16_block(const Bf16Block&) {
  absent();
}

}  // namespace tessera

#endif
