// What the operations with gradients share: checks of their inputs, and loops over fixed blocks. The blocks
// depend on sizes alone, never on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace tessera::ops {

/// Elements that one turn of a parallel loop works on: a few microseconds.
inline constexpr std::int64_t kBlock = 32768;

/// Throws UsageError unless x is f32.
inline void expect_f32(const char* op, const char* name, const Tensor& x) {
  if (!x.defined()) fail(op, name, "an undefined tensor");
  if (x.dtype() != DType::f32) fail(op, std::string(name) + " in f32", name_of(x.dtype()));
}

/// Throws UsageError unless x is f32 of this shape.
inline void expect_shape(const char* op, const char* name, const Tensor& x, const Shape& shape) {
  expect_f32(op, name, x);
  if (x.shape() != shape) fail(op, std::string(name) + " " + shape.str(), x.shape().str());
}

/// The last extent of x, whose rank must be at least 1.
inline std::int64_t channels_of(const char* op, const Tensor& x) {
  expect_f32(op, "x", x);
  if (x.shape().rank() < 1) fail(op, "x [..., C]", x.shape().str());
  return x.dim(x.shape().rank() - 1);
}

/// How many rows of C elements x has; 0 if rows are empty.
inline std::int64_t rows_of(const Tensor& x, std::int64_t channels) {
  return channels > 0 ? x.size() / channels : 0;
}

/// body(begin, n) for blocks [begin, begin + n) of [0, count), on the threads of the pool.
template <class Body>
void for_blocks(ThreadPool& pool, std::int64_t count, std::int64_t block, const Body& body) {
  const std::int64_t blocks = (count + block - 1) / block;
  pool.parallel_for(static_cast<int>(blocks), [&](int i) {
    const std::int64_t begin = i * block;
    body(begin, std::min(block, count - begin));
  });
}

/// The same over rows of `width` elements: whole rows, about kBlock elements at a time.
template <class Body>
void for_rows(ThreadPool& pool, std::int64_t rows, std::int64_t width, const Body& body) {
  for_blocks(pool, rows, std::max<std::int64_t>(kBlock / std::max<std::int64_t>(width, 1), 1), body);
}

/// An axis of a shape as the middle one of three.
struct AxisView {
  std::int64_t outer = 1, extent = 1, inner = 1;
};

/// Throws UsageError unless 0 <= axis < rank.
inline AxisView view_axis(const char* op, const Tensor& x, int axis) {
  expect_f32(op, "x", x);
  const Shape& shape = x.shape();
  if (axis < 0 || axis >= shape.rank()) {
    fail(op, "an axis of x " + shape.str(), std::to_string(axis));
  }
  AxisView view;
  for (int i = 0; i < axis; ++i) view.outer *= shape[i];
  view.extent = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) view.inner *= shape[i];
  return view;
}

/// The shape with another extent at `axis`.
inline Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::int64_t extents[Shape::kMaxRank] = {};
  for (int i = 0; i < shape.rank(); ++i) extents[i] = i == axis ? extent : shape[i];
  return Shape(std::span<const std::int64_t>(extents, static_cast<std::size_t>(shape.rank())));
}

}  // namespace tessera::ops
