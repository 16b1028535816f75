// Copies of contiguous runs at regular distances, and transposition: what moving elements comes down to.
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor.h"
#include "core/thread_pool.h"

namespace tessera::ops {

/// Run i, of `length` elements, goes from `from` + i from_stride to `to` + i to_stride.
void copy_runs(ThreadPool& pool, const float* from, std::int64_t from_stride, float* to,
               std::int64_t to_stride, std::int64_t length, std::int64_t count);
/// Run i of zeros to `to` + i stride.
void clear_runs(ThreadPool& pool, float* to, std::int64_t stride, std::int64_t length, std::int64_t count);

/// y = x with its axes in the order `axes`, which is a permutation.
void permute_copy(ThreadPool& pool, const float* x, const Shape& shape, std::span<const int> axes, float* y);

}  // namespace tessera::ops
