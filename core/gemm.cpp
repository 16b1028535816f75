// The matrix product around its kernels: packing of weights, checks of arguments, shares of the output for
// threads.
#include "core/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/aligned_memory.h"
#include "core/error.h"
#include "core/gemm_kernels.h"
#include "core/gemm_pack.h"
#include "core/tensor.h"

namespace tessera {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;

template <class T>
std::shared_ptr<T> allocate(std::size_t count) {
  return std::static_pointer_cast<T>(allocate_aligned(count * sizeof(T)));
}

// Element (i, j) of the matrix, converted, at [panel][i][j % kPanel]; columns beyond n are zero.
template <class T, class Convert>
std::shared_ptr<T> pack_panels(const PackedMatrix::Source& source, int k, int n, const Convert& convert) {
  const std::size_t panels = static_cast<std::size_t>((n + kPanel - 1) / kPanel);
  std::shared_ptr<T> packed = allocate<T>(panels * kPanel * static_cast<std::size_t>(k));
  T* out = packed.get();
  for (int first = 0; first < n; first += kPanel) {
    const int columns = std::min(kPanel, n - first);
    for (int o = 0; o < k / source.inner; ++o) {
      const float* row = source.weights + o * source.outer_stride + first * source.column_stride;
      for (int i = 0; i < source.inner; ++i, out += kPanel, row += source.inner_stride) {
        for (int j = 0; j < columns; ++j) out[j] = convert(row[j * source.column_stride]);
        std::fill(out + columns, out + kPanel, T{});
      }
    }
  }
  return packed;
}

// Column j as integers of at most 127 at out[(i / 2 * kPanel) * 2 + i % 2]: pairs of k lie side by side, as
// the instructions that sum pairs of products want them. Returns the column's scale; a column with an
// infinity or a NaN has none.
float pack_i8_column(std::int8_t* out, int k, const PackedMatrix::Source& source, int j) {
  constexpr double kLevels = 127;
  const auto element = [&](int i) {
    return source.weights[i / source.inner * source.outer_stride + i % source.inner * source.inner_stride +
                          j * source.column_stride];
  };
  float most = 0;
  for (int i = 0; i < k; ++i) {
    const float magnitude = std::fabs(element(i));
    if (!(magnitude <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::quiet_NaN();
    most = std::max(most, magnitude);
  }
  if (most == 0) return 0;
  for (int i = 0; i < k; ++i) {
    const double value = std::nearbyint(element(i) * (kLevels / most));
    out[i / 2 * (2 * kPanel) + i % 2] = static_cast<std::int8_t>(value);
  }
  return static_cast<float>(most / kLevels);
}

void check(const PackedMatrix::Source& source, int k, int n) {
  if (k < 1 || n < 1)
    fail("pack", "k >= 1 and n >= 1", "k = " + std::to_string(k) + ", n = " + std::to_string(n));
  if (source.weights == nullptr) fail("pack", "weights", "null");
  if (source.inner < 1 || k % source.inner)
    fail("pack", "an inner part that divides k", std::to_string(source.inner));
}

void check(const GemmArgs& args) {
  if (args.weights == nullptr || args.weights->data() == nullptr) fail("gemm", "packed weights", "none");
  const int k = args.weights->k();
  if (args.segments < 1 || k % args.segments != 0) {
    fail("gemm", "segments that divide k = " + std::to_string(k), std::to_string(args.segments));
  }
  if (args.start == GemmStart::bias && args.bias == nullptr) fail("gemm", "a bias", "null");
  if (args.rows.empty()) return;
  if (args.out == nullptr) fail("gemm", "an output", "null");
  if (args.rows.size() > static_cast<std::size_t>(std::numeric_limits<int>::max() / 2)) {
    fail("gemm", "fewer than 2^30 rows", std::to_string(args.rows.size()));
  }
  if (args.rows.size() > 1 && args.out_stride < args.weights->n()) {
    fail("gemm", "out_stride >= n = " + std::to_string(args.weights->n()), std::to_string(args.out_stride));
  }
  const auto null = std::count(args.rows.begin(), args.rows.end(), nullptr);
  if (null > 0) fail("gemm", "a pointer for each row", std::to_string(null) + " null");
}

int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

}  // namespace

// One share holds no more rows than the second-level cache does at usual widths.
Shares share_out(int rows, int k, int n, int threads, bool narrow) {
  constexpr int kMostRows = 192, kLeastRows = 24, kLeastPanels = 4;
  constexpr int kRowStep = 12;  // whole tiles on every target
  constexpr double kLeastProducts =
      65536;  // some microseconds: below, waking a thread costs more than it gains
  const int panels = divide_up(n, kPanel);
  const double products = static_cast<double>(rows) * k * n;
  const int wanted =
      threads == 1 ? 1 : static_cast<int>(std::clamp(products / kLeastProducts, 1.0, 4.0 * threads));
  int row_shares = std::max(std::min(wanted, rows / kLeastRows), divide_up(rows, kMostRows));
  const int share = divide_up(divide_up(rows, row_shares), kRowStep) * kRowStep;
  row_shares = divide_up(rows, share);
  if (narrow) return {share, 1};
  const int panel_shares = std::clamp(divide_up(wanted, row_shares), 1, std::max(panels / kLeastPanels, 1));
  return {share, divide_up(divide_up(panels, panel_shares), kLeastPanels) * kLeastPanels};
}

PackedMatrix PackedMatrix::pack(const Source& source, int k, int n, WeightType type) {
  check(source, k, n);
  if (type == WeightType::i8 && k > kMaxKOfI8) {
    fail("pack", "k <= " + std::to_string(kMaxKOfI8) + " for i8 weights", std::to_string(k));
  }
  PackedMatrix packed;
  packed.k_ = k;
  packed.n_ = n;
  packed.type_ = type;
  const std::size_t columns = static_cast<std::size_t>(packed.panels()) * kPanel;
  const std::size_t elements = columns * static_cast<std::size_t>(k);
  switch (type) {
    case WeightType::f32:
      packed.bytes_ = elements * sizeof(float);
      packed.data_ = pack_panels<float>(source, k, n, [](float w) { return w; });
      break;
    case WeightType::bf16:
      packed.bytes_ = elements * sizeof(std::uint16_t);
      packed.data_ = pack_panels<std::uint16_t>(source, k, n, [](float w) { return f32_to_bf16(w); });
      break;
    case WeightType::i8: {
      const std::size_t panel_bytes = static_cast<std::size_t>(k + k % 2) * kPanel;
      packed.bytes_ = static_cast<std::size_t>(packed.panels()) * panel_bytes;
      std::shared_ptr<std::int8_t> data = allocate<std::int8_t>(packed.bytes_);
      std::fill_n(data.get(), packed.bytes_, std::int8_t{0});
      packed.scales_ = allocate<float>(columns);
      std::fill_n(packed.scales_.get(), columns, 0.0f);
      for (int j = 0; j < n; ++j) {
        std::int8_t* out = data.get() + static_cast<std::size_t>(j / kPanel) * panel_bytes + j % kPanel * 2;
        packed.scales_.get()[j] = pack_i8_column(out, k, source, j);
      }
      packed.data_ = std::move(data);
      break;
    }
  }
  return packed;
}

PackedMatrix PackedMatrix::pack_into(float* memory, const Source& source, int k, int n, ThreadPool& pool) {
  check(source, k, n);
  if (memory == nullptr) fail("pack", "memory", "null");
  PackedMatrix packed;
  packed.k_ = k;
  packed.n_ = n;
  packed.bytes_ = floats_of(k, n) * sizeof(float);
  packed.data_ = std::shared_ptr<void>(std::shared_ptr<void>(), memory);  // a view
  // Some rows of several panels at a time: rows of the source are read as they lie.
  const int groups = divide_up(packed.panels(), kPackedPanels), parts = divide_up(k, kPackedRows);
  pool.parallel_for(groups * parts, [&](int i) {
    const int first = i % groups * kPackedPanels, begin = i / groups * kPackedRows;
    for (int panel = first; panel < std::min(first + kPackedPanels, packed.panels()); ++panel) {
      float* to = memory + (static_cast<std::size_t>(panel) * static_cast<std::size_t>(k) +
                            static_cast<std::size_t>(begin)) *
                               kPanel;
      pack_panel_rows(source, begin, std::min(begin + kPackedRows, k), panel * kPanel, n, to);
    }
  });
  return packed;
}

void gemm(const GemmArgs& args, ThreadPool& pool) {
  check(args);
  if (args.rows.empty()) return;
  const PackedMatrix& weights = *args.weights;
  GemmArgs merged = args;
  if (args.segment_stride == weights.k() / args.segments) merged.segments = 1;  // the runs join
  const int rows = static_cast<int>(args.rows.size());
  const bool narrow = weights.type() != WeightType::i8 && weights.n() <= kNarrowColumns && rows >= 4;
  const Shares share = share_out(rows, weights.k(), weights.n(), pool.threads(), narrow);
  const int row_shares = divide_up(rows, share.rows);
  const int panel_shares = divide_up(weights.panels(), share.panels);
  pool.parallel_for(row_shares * panel_shares, [&](int i) {
    const int row = i % row_shares * share.rows, panel = i / row_shares * share.panels;
    const GemmBlock block{&merged, row, std::min(row + share.rows, rows), panel,
                          std::min(panel + share.panels, weights.panels())};
    if (narrow) {
      gemm_narrow(block);
    } else if (weights.type() == WeightType::i8) {
      gemm_i8(block);
    } else {
      gemm_panels(block);
    }
  });
}

}  // namespace tessera
