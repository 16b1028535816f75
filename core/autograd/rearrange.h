// Operations that only move elements, with gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/tape.h"

namespace tessera::ops {

/// The same elements under another shape of equal size; shares memory.
Tensor reshape(Tape& tape, const Tensor& x, const Shape& shape);
/// Elements [begin, begin + length) of an axis.
Tensor slice(Tape& tape, const Tensor& x, int axis, std::int64_t begin, std::int64_t length);
/// Joined along an axis; the other extents are equal.
Tensor concat(Tape& tape, std::span<const Tensor> parts, int axis);
enum class Padding : std::uint8_t { zero, reflect };  ///< reflect: without the edge; shorter than the axis
Tensor pad(Tape& tape, const Tensor& x, int axis, std::int64_t before, std::int64_t after,
           Padding padding = Padding::zero);
/// Axis i of the result is axis `axes[i]` of x.
Tensor permute(Tape& tape, const Tensor& x, std::span<const int> axes);
/// Rows of table [N, D] -> [indices.size(), D]. Rows that are taken several times sum their gradients, in
/// order.
Tensor take_rows(Tape& tape, const Tensor& table, std::span<const std::int32_t> indices);
/// The mean over windows of `size` elements every `stride` of an axis (what does not fill a window is left
/// out).
Tensor average_pool(Tape& tape, const Tensor& x, int axis, int size, int stride);
/// The largest of each window; the first one wins a tie. (For teachers and metrics.)
Tensor max_pool(Tape& tape, const Tensor& x, int axis, int size, int stride);

}  // namespace tessera::ops
