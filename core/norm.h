// Normalizations and softmax over the channels of each row. Sums use 16 fixed partial sums (element i goes to
// sum i mod 16) and a fixed tree, whatever the vector length (docs/determinism.md).
#pragma once

#include <cstddef>

namespace tessera {

/// Sum of x[0..count) in the fixed order.
float fixed_sum(const float* x, std::size_t count);
/// Sum of x[i] y[i] in the fixed order, each product fused into its partial sum.
float fixed_dot(const float* x, const float* y, std::size_t count);
/// Largest |x[i]|; 0 for none. NaN is ignored.
float max_abs(const float* x, std::size_t count);

/// LayerNorm: (x - mean) / sqrt(var + eps) * weight + bias, biased variance; bias may be null. y may be x.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, float* y, std::size_t rows,
                int channels);
/// RMSNorm: x / sqrt(mean(x^2) + eps) * weight. y may be x.
void rms_norm(const float* x, const float* weight, float eps, float* y, std::size_t rows, int channels);
/// Softmax over each row, in place. A row with a NaN, or with nothing above -inf, becomes NaN.
void softmax(float* x, std::size_t rows, int channels);

}  // namespace tessera
