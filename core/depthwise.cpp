// Depthwise convolutions: one chain of Fma per output over the taps; lanes run across channels.
#include "core/depthwise.h"

#include <string>

#include "core/error.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/depthwise.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd-inl.h"
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;

/// R neighbouring output rows, which share the loads of the weights: out row r from x + r * row_step; tap j
/// lies tap_step after tap j - 1 in x and weight_step in the weights. Steps are in floats.
template <size_t R>
HWY_INLINE void ConvRows(const float* x, size_t row_step, size_t tap_step, const float* weight,
                         size_t weight_step, size_t taps, const float* bias, float* out, size_t out_step,
                         size_t channels) {
  const D d;
  ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
    hn::Vec<D> sums[R];
    for (auto& sum : sums) sum = bias ? LoadFirst(d, bias + c, n) : hn::Zero(d);
    for (size_t j = 0; j < taps; ++j) {
      const auto w = LoadFirst(d, weight + j * weight_step + c, n);
      for (size_t r = 0; r < R; ++r) {
        sums[r] = Fma(d, LoadFirst(d, x + r * row_step + j * tap_step + c, n), w, sums[r]);
      }
    }
    for (size_t r = 0; r < R; ++r) StoreFirst(sums[r], d, out + r * out_step + c, n);
  });
}

void ConvKernel(const float* x, size_t row_step, size_t tap_step, const float* weight, size_t weight_step,
                size_t taps, const float* bias, float* out, size_t out_step, size_t rows, size_t channels) {
  constexpr size_t kRows = 4;
  size_t t = 0;
  for (; t + kRows <= rows; t += kRows) {
    ConvRows<kRows>(x + t * row_step, row_step, tap_step, weight, weight_step, taps, bias, out + t * out_step,
                    out_step, channels);
  }
  for (; t < rows; ++t) {
    ConvRows<1>(x + t * row_step, row_step, tap_step, weight, weight_step, taps, bias, out + t * out_step,
                out_step, channels);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(ConvKernel);

std::size_t at_least(int lowest, int value, const char* op, const char* what) {
  if (value < lowest) fail(op, std::string(what) + " >= " + std::to_string(lowest), std::to_string(value));
  return static_cast<std::size_t>(value);
}

}  // namespace

void depthwise_conv(const float* x, const float* weight, const float* bias, int kernel, int stride,
                    int dilation, float* out, std::size_t rows, int channels) {
  const char* op = "depthwise_conv";
  const std::size_t width = at_least(0, channels, op, "channels");
  const std::size_t row_step = at_least(1, stride, op, "stride") * width;
  const std::size_t tap_step = at_least(1, dilation, op, "dilation") * width;
  HWY_DYNAMIC_DISPATCH(ConvKernel)
  (x, row_step, tap_step, weight, width, at_least(1, kernel, op, "kernel"), bias, out, width, rows, width);
}

void depthwise_conv_transposed(const float* x, const float* weight, const float* bias, int taps, int stride,
                               float* out, std::size_t rows, int channels) {
  const char* op = "depthwise_conv_transposed";
  const std::size_t width = at_least(0, channels, op, "channels");
  const std::size_t phases = at_least(1, stride, op, "stride");
  const std::size_t chain = at_least(1, taps, op, "taps");
  // Every phase of the stride is a convolution of its own.
  for (std::size_t j = 0; j < phases; ++j) {
    HWY_DYNAMIC_DISPATCH(ConvKernel)
    (x, width, width, weight + j * width, phases * width, chain, bias, out + j * width, phases * width, rows,
     width);
  }
}

}  // namespace tessera
#endif  // HWY_ONCE
