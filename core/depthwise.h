// Depthwise convolution: every channel has its own kernel. Each output is one chain of fused multiply-adds
// over the taps in increasing order that starts from the bias (or zero); lanes run across channels.
#pragma once

#include <cstddef>

namespace tessera {

/// Valid convolution: out[t, c] = bias[c] + sum_j x[(t * stride + j * dilation), c] * weight[j, c] for `rows`
/// outputs. weight is [kernel, channels]; bias may be null.
void depthwise_conv(const float* x, const float* weight, const float* bias, int kernel, int stride,
                    int dilation, float* out, std::size_t rows, int channels);
/// Causal transposed convolution with `taps` = ceil(kernel / stride) input rows per output:
/// out[t * stride + j, c] = bias[c] + sum_m x[(t + m), c] * weight[m, j, c]; weight is [taps, stride,
/// channels], the oldest input row first, and x starts taps - 1 rows before the first of the `rows` new ones;
/// out has rows * stride rows.
void depthwise_conv_transposed(const float* x, const float* weight, const float* bias, int taps, int stride,
                               float* out, std::size_t rows, int channels);

}  // namespace tessera
