// Long runs are cut, short ones taken together, so that each turn of a parallel loop moves about kBlock
// elements. A permutation is reduced to few axes first; then either runs stay whole, or it is a stack of
// transpositions, done in tiles whose rows are several cache lines on both sides.
#include "core/autograd/runs.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/autograd/op.h"
#include "core/simd.h"
#include "hwy/highway.h"

namespace tessera::ops {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// body(run, begin, n): elements [begin, begin + n) of a run, in turns of about kBlock elements.
template <class Body>
void over_runs(ThreadPool& pool, std::int64_t length, std::int64_t count, const Body& body) {
  if (length == 0) return;
  const std::int64_t pieces = (length + kBlock - 1) / kBlock;
  for_rows(pool, count * pieces, std::min(length, kBlock), [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t i = first; i < first + n; ++i) {
      const std::int64_t begin = i % pieces * kBlock;
      body(i / pieces, begin, static_cast<std::size_t>(std::min(kBlock, length - begin)));
    }
  });
}

/// Axes of y, outermost first: how long, and how far apart their elements lie in x.
struct Axes {
  int rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> extent{}, stride{};
};

/// Axes of one element left out, and axes joined that follow one another on both sides.
Axes joined_axes(const Shape& shape, std::span<const int> axes) {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  std::int64_t stride = 1;
  for (int i = shape.rank(); i-- > 0; stride *= shape[i]) strides[static_cast<std::size_t>(i)] = stride;
  Axes joined;
  for (const int axis : axes) {
    const std::int64_t extent = shape[axis], step = strides[static_cast<std::size_t>(axis)];
    if (extent == 1) continue;
    const auto last = static_cast<std::size_t>(joined.rank - 1);
    if (joined.rank > 0 && joined.stride[last] == extent * step) {
      joined.extent[last] *= extent;
      joined.stride[last] = step;
    } else {
      joined.extent[static_cast<std::size_t>(joined.rank)] = extent;
      joined.stride[static_cast<std::size_t>(joined.rank++)] = step;
    }
  }
  return joined;
}

/// y[r, c] = x[r + c x_stride] for a tile; rows of y are y_stride apart. Squares of 4 x 4 in registers: the
/// vectors that every CPU has are enough for what memory gives.
HWY_ATTR void transpose_tile(const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                             std::int64_t rows, std::int64_t columns) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const std::int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (std::int64_t r = 0; r < whole_rows; r += 4) {
    for (std::int64_t c = 0; c < whole_columns; c += 4) {
      const float* from = x + r + c * x_stride;
      const auto a0 = hn::LoadU(d, from), a1 = hn::LoadU(d, from + x_stride);
      const auto a2 = hn::LoadU(d, from + 2 * x_stride), a3 = hn::LoadU(d, from + 3 * x_stride);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, a0, a1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, a2, a3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, a0, a1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, a2, a3));
      float* to = y + r * y_stride + c;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + y_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * y_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * y_stride);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = r < whole_rows ? whole_columns : 0;
    for (std::int64_t c = begin; c < columns; ++c) y[r * y_stride + c] = x[r + c * x_stride];
  }
}

}  // namespace

void copy_runs(ThreadPool& pool, const float* from, std::int64_t from_stride, float* to,
               std::int64_t to_stride, std::int64_t length, std::int64_t count) {
  if (from_stride == length && to_stride == length) {
    length *= count;
    count = 1;
  }
  over_runs(pool, length, count, [&](std::int64_t run, std::int64_t begin, std::size_t n) {
    const float* source = from + run * from_stride + begin;
    float* target = to + run * to_stride + begin;
    if (n == 1) {
      *target = *source;  // without a call
    } else {
      std::memcpy(target, source, n * sizeof(float));
    }
  });
}

void clear_runs(ThreadPool& pool, float* to, std::int64_t stride, std::int64_t length, std::int64_t count) {
  over_runs(pool, length, count, [&](std::int64_t run, std::int64_t begin, std::size_t n) {
    std::memset(to + run * stride + begin, 0, n * sizeof(float));
  });
}

void permute_copy(ThreadPool& pool, const float* x, const Shape& shape, std::span<const int> axes, float* y) {
  if (shape.size() == 0) return;
  Axes a = joined_axes(shape, axes);
  const int last = a.rank - 1;
  if (a.rank <= 1) return copy_runs(pool, x, 0, y, 0, shape.size(), 1);

  // y as a list of planes [rows, columns]: columns is its last axis, rows the one before, or, where the last
  // axis of x has moved, that one.
  std::array<std::int64_t, Shape::kMaxRank> y_stride{};
  std::int64_t stride = 1;
  for (int i = a.rank; i-- > 0; stride *= a.extent[static_cast<std::size_t>(i)]) {
    y_stride[static_cast<std::size_t>(i)] = stride;
  }
  const auto column_axis = static_cast<std::size_t>(last);
  const bool runs = a.stride[column_axis] == 1;
  auto row_axis = static_cast<std::size_t>(last - 1);
  for (std::size_t i = 0; !runs && i < column_axis; ++i) {
    if (a.stride[i] == 1) row_axis = i;
  }
  const std::int64_t rows = a.extent[row_axis], columns = a.extent[column_axis];
  // A turn takes a part of a plane: a strip of rows, and as many columns as make a block.
  constexpr std::int64_t kTile = 64;
  const std::int64_t strips = (rows + kTile - 1) / kTile, height = std::min(rows, kTile);
  const std::int64_t width = std::min(columns, std::max(kBlock / height / kTile, std::int64_t{1}) * kTile);
  const std::int64_t pieces = (columns + width - 1) / width;
  const std::int64_t planes = shape.size() / (rows * columns);
  for_rows(pool, planes * strips * pieces, height * width, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t i = first; i < first + n; ++i) {
      std::int64_t from = 0, to = 0, plane = i / (strips * pieces);
      for (std::size_t axis = column_axis; axis-- > 0;) {
        if (axis == row_axis) continue;
        from += plane % a.extent[axis] * a.stride[axis];
        to += plane % a.extent[axis] * y_stride[axis];
        plane /= a.extent[axis];
      }
      const std::int64_t row = i / pieces % strips * kTile, column = i % pieces * width;
      from += row * a.stride[row_axis] + column * a.stride[column_axis];
      to += row * y_stride[row_axis] + column;
      const std::int64_t part_rows = std::min(kTile, rows - row), part = std::min(width, columns - column);
      if (runs) {
        for (std::int64_t r = 0; r < part_rows; ++r) {
          std::memcpy(y + to + r * y_stride[row_axis], x + from + r * a.stride[row_axis],
                      static_cast<std::size_t>(part) * sizeof(float));
        }
        continue;
      }
      for (std::int64_t c = 0; c < part; c += kTile) {
        transpose_tile(x + from + c * a.stride[column_axis], a.stride[column_axis], y + to + c,
                       y_stride[row_axis], part_rows, std::min(kTile, part - c));
      }
    }
  });
}

}  // namespace tessera::ops
