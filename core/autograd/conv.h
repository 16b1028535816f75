// Products with weights, with gradients: the same GEMM as the streaming layers (core/gemm.h), so a forward
// pass in f32 gives the bits of the stream. Channels last: the window of an output is a few contiguous runs,
// there is no im2col. The gradient to the input is a convolution with the flipped, transposed kernel; the
// gradient to the weight is a product over all positions with the transposed input. Both are functions of
// their own.
#pragma once

#include "core/activation.h"
#include "core/autograd/tape.h"

namespace tessera::ops {

/// x [..., K] w [K, N] + bias [N] (or undefined) -> [..., N]
Tensor matmul(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias = {});

/// A kernel over two axes: H may be dilated, W may be strided. That covers dilated, strided and 2-D
/// convolutions.
struct Conv2dOptions {
  int dilation_h = 1;
  int stride_h = 1;  ///< above 1 only with dilation_h == 1
  int stride_w = 1;
  int dilation_w = 1;                  ///< above 1 only with stride_w == 1
  int pad_top = 0, pad_bottom = 0;     ///< zeros before and after H
  int pad_left = 0, pad_right = 0;     ///< zeros before and after W
  Activation post = Activation::none;  ///< elu or leaky_relu, of the output; applied in place
  float slope = 0.01f;                 ///< of leaky_relu
};

/// x [B, H, W, C], w [KH, KW, C, O], bias [O] (or undefined) -> [B, H', W', O], H' = (H + pads - (KH - 1)
/// dilation - 1) / stride + 1 rounded down, W' likewise. Output = bias + sum over kh, kw, c in this order.
Tensor conv2d(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
              const Conv2dOptions& options = {});

struct Conv1dOptions {
  int dilation = 1;
  int stride = 1;  ///< above 1 only with dilation == 1
  int pad_left = 0, pad_right = 0;
  Activation post = Activation::none;
  float slope = 0.01f;
};

/// x [B, T, C], w [K, C, O], bias [O] (or undefined) -> [B, T', O]
Tensor conv1d(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
              const Conv1dOptions& options = {});

/// x [B, T, C], w [K, C, O] -> [B, T stride, O]: every input row gives `stride` output rows, K - stride
/// outputs cut on the right (the causal ConvTranspose1d of core/conv1d.h). K is a multiple of the stride.
Tensor conv_transpose1d(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias, int stride);

/// d L / d x and d L / d w of conv2d for dL/dy `gradient`; not recorded. (`post` is not applied: conv2d does
/// that.)
Tensor conv2d_input_gradient(Tape& tape, const Tensor& gradient, const Tensor& w, const Shape& x,
                             const Conv2dOptions& options);
Tensor conv2d_weight_gradient(Tape& tape, const Tensor& gradient, const Tensor& x, const Shape& w,
                              const Conv2dOptions& options);

/// Whether this CPU multiplies bf16 (AVX512-BF16): what Precision::bf16 needs to be more than a name.
bool bf16_products();

}  // namespace tessera::ops
