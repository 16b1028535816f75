// Gradients of operations on rows (rows_cpu.cpp), one pass per row while it is in the nearest cache. All
// arrays are rows of `channels` elements one after another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::ops {

/// y = x / sqrt(|x|^2 + eps); inverse[t] is the factor of row t.
void l2_normalize_rows(const float* x, float eps, float* y, float* inverse, std::size_t rows,
                       std::size_t channels);
/// dx = (g - y (g . y)) inverse
void l2_normalize_gradient(const float* g, const float* y, const float* inverse, float* dx, std::size_t rows,
                           std::size_t channels);
/// dx of LayerNorm, and x as it was normalized before the weight.
void layer_norm_gradient(const float* g, const float* x, const float* weight, float eps, float* dx,
                         float* normal, std::size_t rows, std::size_t channels);
/// dx = y (g - (g . y))
void softmax_gradient(const float* g, const float* y, float* dx, std::size_t rows, std::size_t channels);
/// p = softmax(x), loss[t] = -log p at targets[t]; a row with target -1 gives p = 0 and loss 0.
void cross_entropy_rows(const float* x, const std::int32_t* targets, float* p, float* loss, std::size_t rows,
                        std::size_t channels);

}  // namespace tessera::ops
