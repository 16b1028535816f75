// Memory work around the matrix products: transposed copies and packing of right operands, by vectors and
// shared out over threads. Training packs anew at every step. Internal to core.
#pragma once

#include <cstddef>

#include "core/gemm.h"

namespace tessera {

/// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns.
void transpose(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows, std::ptrdiff_t columns,
               float* to, std::ptrdiff_t to_stride);

/// What is packed at a time: rows of so many panels.
inline constexpr int kPackedRows = 64, kPackedPanels = 8;

/// Rows [begin, end) of one panel of `source`, whose first column is `column`, as [end - begin][kPanel]
/// floats; columns beyond n are zero.
void pack_panel_rows(const PackedMatrix::Source& source, int begin, int end, int column, int n, float* to);

}  // namespace tessera
