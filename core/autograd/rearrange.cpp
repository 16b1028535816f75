// Operations that move elements, in terms of runs (runs.h). The gradient of a slice is a padding and that of
// a padding a slice. Pooling is in pool.cpp.
#include "core/autograd/rearrange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/elementwise_kernels.h"
#include "core/autograd/op.h"
#include "core/autograd/runs.h"

namespace tessera::ops {
namespace {

/// The gradient of reflect padding: each element with those of its mirror images.
Tensor fold_reflection(Tape& tape, const Tensor& g, const Shape& shape, const AxisView& view,
                       std::int64_t before, std::int64_t after) {
  Tensor dx = tape.make(shape);
  float* out = dx.f32();
  const auto width = static_cast<std::size_t>(view.inner);
  const std::int64_t extent = view.extent;
  for_rows(tape.pool(), view.outer * extent, view.inner, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t row = first; row < first + n; ++row) {
      const std::int64_t i = row % extent;
      const float* item = g.f32() + row / extent * (before + extent + after) * view.inner;
      float* to = out + row * view.inner;
      std::memcpy(to, item + (before + i) * view.inner, width * sizeof(float));
      const auto add_row = [&](std::int64_t from) {
        const float* mirrored = item + from * view.inner;
        for (std::size_t c = 0; c < width; ++c) to[c] += mirrored[c];
      };
      if (i >= 1 && i <= before) add_row(before - i);
      if (i < extent - 1 && i >= extent - 1 - after) add_row(before + 2 * (extent - 1) - i);
    }
  });
  return dx;
}

/// Gradients of the rows of a table: those of each row are added in order of index.
Tensor gather_rows(Tape& tape, const Tensor& g, const Shape& table, std::span<const std::int32_t> indices) {
  // Counting sort of positions by row.
  const std::int64_t rows = table[0], width = table[1];
  std::vector<std::int64_t> begin(static_cast<std::size_t>(rows) + 1), position(indices.size());
  for (const std::int32_t row : indices) ++begin[static_cast<std::size_t>(row) + 1];
  for (std::size_t row = 0; row + 1 < begin.size(); ++row) begin[row + 1] += begin[row];
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    position[static_cast<std::size_t>(next[static_cast<std::size_t>(indices[i])]++)] =
        static_cast<std::int64_t>(i);
  }
  Tensor dx = tape.make(table);
  float* out = dx.f32();
  const auto count = static_cast<std::size_t>(width);
  for_rows(tape.pool(), rows, width, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t row = first; row < first + n; ++row) {
      float* to = out + row * width;
      std::memset(to, 0, count * sizeof(float));
      const auto end = static_cast<std::size_t>(begin[static_cast<std::size_t>(row) + 1]);
      for (auto i = static_cast<std::size_t>(begin[static_cast<std::size_t>(row)]); i < end; ++i) {
        binary(Binary::add, to, g.f32() + position[i] * width, to, count);
      }
    }
  });
  return dx;
}

}  // namespace

Tensor reshape(Tape& tape, const Tensor& x, const Shape& shape) {
  expect_f32("reshape", "x", x);
  return tape.record(x.reshaped(shape), {x}, [shape = x.shape()](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, g.reshaped(shape));
  });
}

Tensor slice(Tape& tape, const Tensor& x, int axis, std::int64_t begin, std::int64_t length) {
  const AxisView view = view_axis("slice", x, axis);
  if (begin < 0 || length < 0 || begin > view.extent - length) {
    fail("slice", "a part of " + std::to_string(view.extent) + " elements",
         std::to_string(length) + " from " + std::to_string(begin));
  }
  Tensor y = tape.make(with_extent(x.shape(), axis, length));
  copy_runs(tape.pool(), x.f32() + begin * view.inner, view.extent * view.inner, y.f32(), length * view.inner,
            length * view.inner, view.outer);
  const std::int64_t after = view.extent - begin - length;
  return tape.record(y, {x}, [&tape, axis, begin, after](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, pad(tape, g, axis, begin, after));
  });
}

Tensor concat(Tape& tape, std::span<const Tensor> parts, int axis) {
  if (parts.empty()) fail("concat", "at least one part", "none");
  const AxisView view = view_axis("concat", parts[0], axis);
  std::int64_t extent = 0;
  for (const Tensor& part : parts) {
    expect_f32("concat", "each part", part);
    if (part.shape().rank() != parts[0].shape().rank() ||
        with_extent(part.shape(), axis, view.extent) != parts[0].shape()) {
      fail("concat", "parts like " + parts[0].shape().str() + " but for axis " + std::to_string(axis),
           part.shape().str());
    }
    extent += part.dim(axis);
  }
  Tensor y = tape.make(with_extent(parts[0].shape(), axis, extent));
  std::vector<std::int64_t> lengths;
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    const std::int64_t length = part.dim(axis);
    copy_runs(tape.pool(), part.f32(), length * view.inner, y.f32() + at * view.inner, extent * view.inner,
              length * view.inner, view.outer);
    lengths.push_back(length);
    at += length;
  }
  return tape.record(y, parts,
                     [&tape, axis, lengths = std::move(lengths)](const Tensor& g, InputGradients& inputs) {
                       std::int64_t begin = 0;
                       for (std::size_t i = 0; i < lengths.size(); begin += lengths[i++]) {
                         if (inputs.wants(i)) inputs.add(i, slice(tape, g, axis, begin, lengths[i]));
                       }
                     });
}

Tensor pad(Tape& tape, const Tensor& x, int axis, std::int64_t before, std::int64_t after, Padding padding) {
  const AxisView view = view_axis("pad", x, axis);
  const std::int64_t extent = view.extent, inner = view.inner;
  if (before < 0 || after < 0) {
    fail("pad", "lengths >= 0", std::to_string(before) + " and " + std::to_string(after));
  }
  const bool reflect = padding == Padding::reflect;
  if (reflect && std::max(before, after) >= std::max<std::int64_t>(extent, 1)) {
    fail("pad", "reflections shorter than the axis, " + std::to_string(extent),
         std::to_string(before) + " and " + std::to_string(after));
  }
  Tensor y = tape.make(with_extent(x.shape(), axis, before + extent + after));
  ThreadPool& pool = tape.pool();
  const std::int64_t from_stride = extent * inner, to_stride = (before + extent + after) * inner;
  float* middle = y.f32() + before * inner;
  copy_runs(pool, x.f32(), from_stride, middle, to_stride, from_stride, view.outer);
  if (reflect) {
    for (std::int64_t i = 1; i <= before; ++i) {
      copy_runs(pool, x.f32() + i * inner, from_stride, middle - i * inner, to_stride, inner, view.outer);
    }
    for (std::int64_t i = 1; i <= after; ++i) {
      copy_runs(pool, x.f32() + (extent - 1 - i) * inner, from_stride, middle + (extent - 1 + i) * inner,
                to_stride, inner, view.outer);
    }
  } else {
    clear_runs(pool, y.f32(), to_stride, before * inner, view.outer);
    clear_runs(pool, middle + from_stride, to_stride, after * inner, view.outer);
  }
  return tape.record(y, {x},
                     [&tape, axis, before, after, reflect, view, shape = x.shape()](const Tensor& g,
                                                                                    InputGradients& inputs) {
                       inputs.add(0, reflect ? fold_reflection(tape, g, shape, view, before, after)
                                             : slice(tape, g, axis, before, view.extent));
                     });
}

Tensor permute(Tape& tape, const Tensor& x, std::span<const int> axes) {
  expect_f32("permute", "x", x);
  const int rank = x.shape().rank();
  std::array<int, Shape::kMaxRank> order{}, inverse{};
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  unsigned seen = 0;
  const auto refuse = [&] {
    std::string got;
    for (const int axis : axes) got += (got.empty() ? "" : ", ") + std::to_string(axis);
    fail("permute", "each axis of " + x.shape().str() + " once", got);
  };
  if (std::ssize(axes) != rank) refuse();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= rank || (seen >> axes[i] & 1u)) refuse();
    seen |= 1u << axes[i];
    order[i] = axes[i];
    inverse[static_cast<std::size_t>(axes[i])] = static_cast<int>(i);
    extents[i] = x.dim(axes[i]);
  }
  Tensor y = tape.make(Shape(std::span<const std::int64_t>(extents.data(), axes.size())));
  permute_copy(tape.pool(), x.f32(), x.shape(), axes, y.f32());
  return tape.record(y, {x}, [&tape, inverse, rank](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, permute(tape, g, std::span(inverse.data(), static_cast<std::size_t>(rank))));
  });
}

Tensor take_rows(Tape& tape, const Tensor& table, std::span<const std::int32_t> indices) {
  expect_f32("take_rows", "table", table);
  if (table.shape().rank() != 2) fail("take_rows", "table [N, D]", table.shape().str());
  for (const std::int32_t row : indices) {
    if (row < 0 || row >= table.dim(0)) {
      fail("take_rows", "indices from 0 to " + std::to_string(table.dim(0) - 1), std::to_string(row));
    }
  }
  const std::int64_t width = table.dim(1);
  Tensor y = tape.make({std::ssize(indices), width});
  float* out = y.f32();
  for_rows(tape.pool(), std::ssize(indices), width, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t i = first; i < first + n; ++i) {
      std::copy_n(table.f32() + indices[static_cast<std::size_t>(i)] * width, width, out + i * width);
    }
  });
  if (!table.recorded()) return y;
  return tape.record(
      y, {table},
      [&tape, shape = table.shape(), kept = std::vector(indices.begin(), indices.end())](
          const Tensor& g, InputGradients& inputs) { inputs.add(0, gather_rows(tape, g, shape, kept)); });
}

}  // namespace tessera::ops
