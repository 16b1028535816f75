// The output of a convolution: the windows of the padded input times the kernel as it lies.
#include "core/autograd/conv_products.h"
#include "core/autograd/conv_windows.h"

namespace tessera::ops {
namespace {

template <class Kind>
void output(Tape& tape, const ConvShape& s, const float* x, const float* w, const float* bias, float* y) {
  const Conv2dOptions& o = s.options;
  const Window window{.batch = s.batch,
                      .height = s.height,
                      .width = s.width,
                      .channels = s.channels,
                      .top = -o.pad_top,
                      .bottom = s.height + o.pad_bottom,
                      .left = -o.pad_left,
                      .right = s.width + o.pad_right};
  const WindowProduct product{
      .window = window,
      .kernel_h = s.kernel_h,
      .kernel_w = s.kernel_w,
      .dilation_h = o.dilation_h,
      .dilation_w = o.dilation_w,
      .stride_h = o.stride_h,
      .stride_w = o.stride_w,
      .out_height = s.out_height,
      .out_width = s.out_width,
      .outputs = s.outputs,
      .weights = {w, s.channels, static_cast<std::ptrdiff_t>(s.channels) * s.outputs, s.outputs, 1},
      .bias = bias};
  multiply_windows<Kind>(tape, product, x, y);
}

}  // namespace

void conv_output(Tape& tape, const ConvShape& shape, const float* x, const float* w, const float* bias,
                 float* y) {
  if (shape.bf16) return output<Bf16Operands>(tape, shape, x, w, bias, y);
  output<F32Operands>(tape, shape, x, w, bias, y);
}

}  // namespace tessera::ops
