// What core/gemm.cpp hands to the kernels of the matrix product: one rectangle of the output. Internal to
// core.
#pragma once

#include "core/gemm.h"

namespace tessera {

/// Rows [row_begin, row_end) and panels [panel_begin, panel_end) of a checked product.
struct GemmBlock {
  const GemmArgs* args = nullptr;
  int row_begin = 0, row_end = 0;
  int panel_begin = 0, panel_end = 0;

  int rows() const { return row_end - row_begin; }
};

/// The longest k for i8 weights: 511 (a row's largest integer) * 127 * kMaxKOfI8 fits an int32.
inline constexpr int kMaxKOfI8 = 16384;

/// At most this many columns go to gemm_narrow.
inline constexpr int kNarrowColumns = 2;

/// How an output is cut into blocks for threads, each `rows` x `panels` but the last ones.
struct Shares {
  int rows = 1, panels = 1;
};
/// Few rows are shared out by panels, so that the weights are read once; many rows by rows, all panels
/// together when the product is narrow.
Shares share_out(int rows, int k, int n, int threads, bool narrow);

/// f32 and bf16 weights: lanes across the columns of a panel.
void gemm_panels(const GemmBlock& block);
/// f32 and bf16 weights of at most kNarrowColumns columns: lanes across rows.
void gemm_narrow(const GemmBlock& block);
/// i8 weights.
void gemm_i8(const GemmBlock& block);

}  // namespace tessera
