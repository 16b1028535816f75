// The three products of a convolution, over plain arrays: internal to core/autograd/conv.cpp.
#pragma once

#include "core/autograd/conv.h"

namespace tessera::ops {

/// A checked convolution: x [batch, height, width, channels], w [kernel_h, kernel_w, channels, outputs],
/// y [batch, out_height, out_width, outputs].
struct ConvShape {
  int batch = 1, height = 1, width = 1, channels = 1;
  int kernel_h = 1, kernel_w = 1, outputs = 1;
  int out_height = 1, out_width = 1;
  Conv2dOptions options = {};
  bool bf16 = false;  ///< all three products multiply bf16; needs has_bf16_products()
};

/// y = bias (or zero when null) + x * w
void conv_output(Tape& tape, const ConvShape& shape, const float* x, const float* w, const float* bias,
                 float* y);
/// dx = dy * w flipped and transposed: every element a sum over kernel_h, kernel_w from the last tap to the
/// first, then outputs.
void conv_input_gradient(Tape& tape, const ConvShape& shape, const float* dy, const float* w, float* dx);
/// dw = x transposed * dy: sums over positions, in fixed blocks.
void conv_weight_gradient(Tape& tape, const ConvShape& shape, const float* dy, const float* x, float* dw);

/// Throws UsageError for an activation that cannot be told from its value.
void check_post(const char* op, Activation post, float slope);
/// f(y) in place for elu and leaky_relu.
void apply_post(Tape& tape, const Conv2dOptions& options, Tensor& y);
/// The gradient before f, from that after it and from f's value y alone.
Tensor post_gradient(Tape& tape, const Conv2dOptions& options, const Tensor& y, const Tensor& gradient);

}  // namespace tessera::ops
