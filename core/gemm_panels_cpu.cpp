// Matrix product for f32 and bf16 weights: register tiles of R rows x P panels, each output one chain of
// fused multiply-adds over k. Blocks of k keep a slice of the weights in cache while rows pass; the chain
// goes on from `out`, so blocking changes no bit. Leaves out: outputs of one or two columns
// (gemm_narrow_cpu.cpp).
#include <algorithm>

#include "core/gemm_kernels.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/gemm_panels_cpu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target
#include "core/simd-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;
using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr int kLanes = hn::MaxLanes(D());
constexpr int kVectors = kPanel / kLanes;  // per panel

// Accumulators that leave room for the weights and one broadcast value: of 32 registers, or of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kAccumulators = 24;
#elif HWY_TARGET == HWY_AVX2
constexpr int kAccumulators = 12;
#else
constexpr int kAccumulators = 8;
#endif
constexpr int kMaxPanels = 4;
constexpr int kMaxRows = 8;

constexpr int max_rows(int panels) {
  const int rows = kAccumulators / (panels * kVectors);
  return rows < kMaxRows ? rows : kMaxRows;
}
// Rows of the tile that reads memory least: 6 x 4 or 8 x 2 panels of one vector, or 6 x 1 of two or four.
constexpr int kTallRows = max_rows(1) < 6 ? max_rows(1) : 6;
// Values of k whose weights, for a tile's panels, stay in the first-level cache while rows pass.
constexpr int kBlockK = 256;
// Weights of a tile's panels that leave room for its rows in the first-level cache.
constexpr std::size_t kTileBytes = 32 * 1024;
// Values of k that a lone tile fetches ahead of itself: 16 KB of f32, past the page where hardware
// prefetchers stop.
constexpr int kRunAhead = 256;

HWY_INLINE V load_weights(const float* p) {
  return hn::Load(D(), p);
}
HWY_INLINE V load_weights(const std::uint16_t* p) {  // bf16: the upper half of an f32
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::Load(d16, p))));
}

// A stretch of k: `segments` runs of `length` values each, the first `offset` floats after a row's pointer.
struct Stretch {
  std::ptrdiff_t offset = 0, stride = 0;
  int segments = 0, length = 0;
};

// Where chains start and end: row r of the tile at + r * stride.
struct Ends {
  const float* start = nullptr;
  std::ptrdiff_t start_stride = 0;
  float* out = nullptr;
  std::ptrdiff_t out_stride = 0;
};

// Weights that a tile brings into the cache while it works on its own: `panels` panels from `weights` on.
template <class T>
struct Ahead {
  const T* weights = nullptr;
  int panels = 0;
};

template <class T>
using Tile = void (*)(const float* const* rows, const Stretch& stretch, const T* weights,
                      const Ahead<T>& ahead, std::size_t panel_stride, const Ends& ends);

template <class T, int R, int P>
void tile(const float* const* rows, const Stretch& stretch, const T* weights, const Ahead<T>& ahead,
          std::size_t panel_stride, const Ends& ends) {
  const D d;
  constexpr int kWidth = P * kVectors;
  V sum[R][kWidth];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kWidth; ++v)
      sum[r][v] = hn::LoadU(d, ends.start + r * ends.start_stride + v * kLanes);
  }
  const float* x[R];
  for (int r = 0; r < R; ++r) x[r] = rows[r] + stretch.offset;
  const T* fetch = ahead.panels > 0 ? ahead.weights : weights;
  for (int s = 0; s < stretch.segments; ++s) {
    for (int i = 0; i < stretch.length; ++i) {
      V w[kWidth];
      for (int v = 0; v < kWidth; ++v) {
        w[v] = load_weights(weights + static_cast<std::size_t>(v / kVectors) * panel_stride +
                            v % kVectors * kLanes);
      }
      for (int r = 0; r < R; ++r) {
        const V value = hn::Set(d, x[r][i]);
        for (int v = 0; v < kWidth; ++v) sum[r][v] = Fma(d, value, w[v], sum[r][v]);
      }
      for (int p = 0; p < ahead.panels; ++p)
        hwy::Prefetch(fetch + static_cast<std::size_t>(p) * panel_stride);
      weights += kPanel;
      fetch += kPanel;
    }
    for (int r = 0; r < R; ++r) x[r] += stretch.stride;
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kWidth; ++v) hn::StoreU(sum[r][v], d, ends.out + r * ends.out_stride + v * kLanes);
  }
}

template <class T, int R, int P>
constexpr Tile<T> tile_if_it_fits() {
  if constexpr (R <= max_rows(P)) return &tile<T, R, P>;
  return nullptr;
}

template <class T, int P>
Tile<T> tile_of_rows(int rows) {
  constexpr Tile<T> kTiles[kMaxRows] = {tile_if_it_fits<T, 1, P>(), tile_if_it_fits<T, 2, P>(),
                                        tile_if_it_fits<T, 3, P>(), tile_if_it_fits<T, 4, P>(),
                                        tile_if_it_fits<T, 5, P>(), tile_if_it_fits<T, 6, P>(),
                                        tile_if_it_fits<T, 7, P>(), tile_if_it_fits<T, 8, P>()};
  return kTiles[rows - 1];
}

template <class T>
Tile<T> tile_of(int rows, int panels) {
  switch (panels) {
    case 4:
      return tile_of_rows<T, 4>(rows);
    case 2:
      return tile_of_rows<T, 2>(rows);
    default:
      return tile_of_rows<T, 1>(rows);
  }
}

// Panels of the tiles for `rows` rows, of which `panels` are left; `slice` bytes of each are used before the
// next.
int tile_panels(int rows, int panels, std::size_t slice) {
  // Several tiles pass over the same weights: these and their rows should fit the first-level cache.
  const int most = rows > kMaxRows && kMaxPanels * slice > kTileBytes ? kMaxPanels / 2 : kMaxPanels;
  int width = most;
  while (width > 1 && (width > panels || max_rows(width) < std::min(rows, kTallRows))) width /= 2;
  // Bound by memory: the best is one linear stream of weights, or several when a lone row leaves too few
  // chains.
  return rows > 1 && rows <= max_rows(1) ? 1 : width;
}

// One rectangle over one stretch of k, which starts at weight row `k_begin`.
template <class T>
class StretchOfBlock {
 public:
  StretchOfBlock(const GemmBlock& block, const Stretch& stretch, int k_begin)
      : block_(block), args_(*block.args), stretch_(stretch), k_begin_(k_begin) {}

  void run() const {
    const int full_panels = std::min(block_.panel_end, args_.weights->n() / kPanel);
    const std::size_t slice = static_cast<std::size_t>(stretch_.segments) *
                              static_cast<std::size_t>(stretch_.length) * kPanel * sizeof(T);
    int panel = block_.panel_begin;
    for (int width; panel < full_panels; panel += width) {
      width = tile_panels(block_.rows(), full_panels - panel, slice);
      group(panel, width);
    }
    if (panel < block_.panel_end) group(panel, 1);
  }

 private:
  // Rows in tiles of nearly equal height.
  void group(int panel, int width) const {
    const int tiles = (block_.rows() + max_rows(width) - 1) / max_rows(width);
    const T* next = next_group(panel + width);
    // A lone tile of one panel runs ahead of itself. Several tiles share the fetching of the next group.
    const int share = (width + tiles - 1) / tiles;
    for (int t = 0, row = block_.row_begin; t < tiles; ++t) {
      const int rows = (block_.row_end - row + tiles - t - 1) / (tiles - t);
      Ahead<T> ahead;
      if (tiles == 1) {
        if (width == 1) ahead = {weights_at(panel, k_begin_) + kRunAhead * kPanel, 1};
      } else if (next != nullptr && t * share < width) {
        ahead = {next + static_cast<std::size_t>(t * share) * panel_stride(),
                 std::min(share, width - t * share)};
      }
      one_tile(row, rows, panel, width, ahead);
      row += rows;
    }
  }

  std::size_t panel_stride() const { return static_cast<std::size_t>(args_.weights->k()) * kPanel; }
  const T* weights_at(int panel, int k) const {
    return static_cast<const T*>(args_.weights->data()) + static_cast<std::size_t>(panel) * panel_stride() +
           static_cast<std::size_t>(k) * kPanel;
  }

  // The weights used after those of the panels before `panel`; null at the end.
  const T* next_group(int panel) const {
    if (panel < block_.panel_end) return weights_at(panel, k_begin_);
    const int k = k_begin_ + stretch_.segments * stretch_.length;
    return k < args_.weights->k() ? weights_at(block_.panel_begin, k) : nullptr;
  }

  void one_tile(int row, int rows, int panel, int width, const Ahead<T>& ahead) const {
    static constexpr float kZeros[kMaxPanels * kPanel] = {};
    const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(panel) * kPanel;
    const T* weights = weights_at(panel, k_begin_);
    Ends ends{.out = args_.out + row * args_.out_stride + column, .out_stride = args_.out_stride};
    if (k_begin_ > 0 || args_.start == GemmStart::output) {
      ends.start = ends.out;
      ends.start_stride = ends.out_stride;
    } else {
      ends.start = args_.start == GemmStart::bias ? args_.bias + column : kZeros;
    }
    const Tile<T> tile = tile_of<T>(rows, width);
    const int columns = args_.weights->n() - static_cast<int>(column);
    if (columns >= width * kPanel) {
      tile(args_.rows.data() + row, stretch_, weights, ahead, panel_stride(), ends);
      return;
    }
    // The last, partly filled panel: `out` and `bias` end inside it, so the tile works on a copy.
    float copy[kMaxRows * kPanel] = {};
    for (int r = 0; r < rows; ++r)
      std::copy_n(ends.start + r * ends.start_stride, columns, copy + r * kPanel);
    tile(args_.rows.data() + row, stretch_, weights, ahead, panel_stride(), {copy, kPanel, copy, kPanel});
    for (int r = 0; r < rows; ++r) std::copy_n(copy + r * kPanel, columns, ends.out + r * ends.out_stride);
  }

  const GemmBlock& block_;
  const GemmArgs& args_;
  Stretch stretch_;
  int k_begin_;
};

template <class T>
void all_stretches(const GemmBlock& block) {
  const GemmArgs& args = *block.args;
  const int k = args.weights->k();
  const int length = k / args.segments;
  // A single row of tiles uses each weight once: nothing to keep in cache.
  const int most = block.rows() <= max_rows(1) ? k : kBlockK;
  if (length <= most) {
    const int step = most / length;
    for (int s = 0; s < args.segments; s += step) {
      const Stretch stretch{s * args.segment_stride, args.segment_stride, std::min(step, args.segments - s),
                            length};
      StretchOfBlock<T>(block, stretch, s * length).run();
    }
    return;
  }
  for (int s = 0; s < args.segments; ++s) {
    for (int i = 0; i < length; i += most) {
      const Stretch stretch{s * args.segment_stride + i, 0, 1, std::min(most, length - i)};
      StretchOfBlock<T>(block, stretch, s * length + i).run();
    }
  }
}

}  // namespace

void Panels(const GemmBlock& block) {
  if (block.args->weights->type() == WeightType::bf16) {
    all_stretches<std::uint16_t>(block);
  } else {
    all_stretches<float>(block);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(Panels);

void gemm_panels(const GemmBlock& block) {
  HWY_DYNAMIC_DISPATCH(Panels)(block);
}

}  // namespace tessera
#endif
