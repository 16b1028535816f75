// A linear map over contiguous rows: gemm with the row pointers laid out in the workspace.
#pragma once

#include "core/gemm.h"
#include "core/layer.h"

namespace tessera {

/// out [rows, n] = start + x [rows, k] W [k, n]
struct LinearArgs {
  const float* x = nullptr;
  int rows = 0;
  const PackedMatrix* weights = nullptr;
  GemmStart start = GemmStart::zero;
  const float* bias = nullptr;  ///< [n], for GemmStart::bias
  float* out = nullptr;
};

/// Runs it. Scratch goes on `side` of the workspace and is released.
void linear(const LinearArgs& args, Workspace::Side side, StepContext& context);
/// What it allocates for `rows` rows.
std::size_t linear_workspace_bytes(int rows);

}  // namespace tessera
