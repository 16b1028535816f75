// The bf16 product around its kernels: checks, packing, shares of the output for threads.
#include "core/gemm_bf16.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/cpu.h"
#include "core/error.h"
#include "core/gemm_bf16_kernels.h"
#include "core/gemm_kernels.h"
#include "core/gemm_pack.h"

namespace tessera {
namespace {

constexpr int kPanel = PackedMatrix::kPanel;

int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

void expect_products(const char* op) {
  if (!has_bf16_products()) fail(op, "a CPU with AVX512-BF16", cpu_target());
}

void check(const Bf16GemmArgs& args) {
  const char* const op = "gemm_bf16";
  if (args.weights == nullptr || args.weights->data() == nullptr) fail(op, "packed weights", "none");
  if (args.segments != args.weights->segments()) {
    fail(op, std::to_string(args.weights->segments()) + " segments", std::to_string(args.segments));
  }
  if (args.start == GemmStart::bias && args.bias == nullptr) fail(op, "a bias", "null");
  if (args.rows.empty()) return;
  if (args.out == nullptr) fail(op, "an output", "null");
  if (args.rows.size() > static_cast<std::size_t>(std::numeric_limits<int>::max() / 2)) {
    fail(op, "fewer than 2^30 rows", std::to_string(args.rows.size()));
  }
  if (args.rows.size() > 1 && args.out_stride < args.weights->n()) {
    fail(op, "out_stride >= n = " + std::to_string(args.weights->n()), std::to_string(args.out_stride));
  }
  const auto null = std::count(args.rows.begin(), args.rows.end(), nullptr);
  if (null > 0) fail(op, "a pointer for each row", std::to_string(null) + " null");
}

// Rows [begin, begin + length) of a panel: at most kPackedRows, of one segment.
void pack_rows(const PackedMatrix::Source& source, int begin, int length, int column, int n,
               std::uint16_t* to) {
  static_assert(kPackedRows % 2 == 0, "pairs stay together");
  alignas(64) float rows[kPackedRows * kPanel];
  pack_panel_rows(source, begin, begin + length, column, n, rows);
  if (length % 2 != 0) std::fill_n(rows + length * kPanel, kPanel, 0.0f);
  pair_rows_bf16(rows, divide_up(length, 2), to);
}

}  // namespace

bool has_bf16_products() {
  return cpu_has_bf16() && cpu_target() == "avx512";
}

void round_to_bf16(const float* from, std::size_t count, std::uint16_t* to) {
  if (!cpu_has_bf16()) expect_products("round_to_bf16");
  round_to_bf16_cpu(from, count, to);
}

std::size_t Bf16Matrix::elements_of(int k, int n, int segments) {
  const auto size = [](int value) { return static_cast<std::size_t>(value); };
  return size(divide_up(n, kPanel)) * kPanel * size(segments) * size(divide_up(k / segments, 2)) * 2;
}

Bf16Matrix Bf16Matrix::pack_into(std::uint16_t* memory, const PackedMatrix::Source& source, int k, int n,
                                 int segments, ThreadPool& pool) {
  const char* const op = "pack_bf16";
  expect_products(op);
  if (k < 1 || n < 1)
    fail(op, "k >= 1 and n >= 1", "k = " + std::to_string(k) + ", n = " + std::to_string(n));
  if (source.weights == nullptr || memory == nullptr) fail(op, "weights and memory", "null");
  if (source.inner < 1 || k % source.inner)
    fail(op, "an inner part that divides k", std::to_string(source.inner));
  if (segments < 1 || k % segments)
    fail(op, "segments that divide k = " + std::to_string(k), std::to_string(segments));
  Bf16Matrix packed;
  packed.k_ = k;
  packed.n_ = n;
  packed.segments_ = segments;
  packed.data_ = memory;
  const int length = k / segments, pairs = divide_up(length, 2);
  const int groups = divide_up(packed.panels(), kPackedPanels);
  // Some rows of several panels at a time: rows of the source are read as they lie. Short segments go
  // together.
  const int parts = divide_up(length, kPackedRows), step = std::max(kPackedRows / length, 1);
  const int stretches = divide_up(segments, step);
  pool.parallel_for(groups * stretches * parts, [&](int i) {
    const int first = i % groups * kPackedPanels, begin = i / groups % parts * kPackedRows;
    const int segment = i / groups / parts * step;
    for (int panel = first; panel < std::min(first + kPackedPanels, packed.panels()); ++panel) {
      for (int s = segment; s < std::min(segment + step, segments); ++s) {
        const std::size_t pair = static_cast<std::size_t>(panel) * static_cast<std::size_t>(packed.pairs()) +
                                 static_cast<std::size_t>(s) * static_cast<std::size_t>(pairs) +
                                 static_cast<std::size_t>(begin / 2);
        pack_rows(source, s * length + begin, std::min(kPackedRows, length - begin), panel * kPanel, n,
                  memory + pair * 2 * kPanel);
      }
    }
  });
  return packed;
}

void gemm_bf16(const Bf16GemmArgs& args, ThreadPool& pool) {
  expect_products("gemm_bf16");
  check(args);
  if (args.rows.empty()) return;
  const Bf16Matrix& weights = *args.weights;
  const int rows = static_cast<int>(args.rows.size());
  const Shares share = share_out(rows, weights.k(), weights.n(), pool.threads(), false);
  const int row_shares = divide_up(rows, share.rows);
  const int panel_shares = divide_up(weights.panels(), share.panels);
  pool.parallel_for(row_shares * panel_shares, [&](int i) {
    const int row = i % row_shares * share.rows, panel = i / row_shares * share.panels;
    gemm_bf16_block({&args, row, std::min(row + share.rows, rows), panel,
                     std::min(panel + share.panels, weights.panels())});
  });
}

}  // namespace tessera
