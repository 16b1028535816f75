// What core/gemm_bf16.cpp hands to its kernels. Internal to core.
#pragma once

#include "core/gemm_bf16.h"

namespace tessera {

/// Rows [row_begin, row_end) and panels [panel_begin, panel_end) of a checked product.
struct Bf16Block {
  const Bf16GemmArgs* args = nullptr;
  int row_begin = 0, row_end = 0;
  int panel_begin = 0, panel_end = 0;

  int rows() const { return row_end - row_begin; }
};

/// Whether the kernels below can run.
bool cpu_has_bf16();
void round_to_bf16_cpu(const float* from, std::size_t count, std::uint16_t* to);
/// Pairs of rows [2 * pairs][16] of f32, side by side: [pairs][16][2].
void pair_rows_bf16(const float* rows, int pairs, std::uint16_t* to);
void gemm_bf16_block(const Bf16Block& block);

}  // namespace tessera
