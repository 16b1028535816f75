// The kernels of winograd_kernels.h: both transforms are products with a small matrix from the left and from
// the right, here one after the other in registers.
#include "core/simd.h"
#include "metrics/winograd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/winograd_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, metrics::kWinogradChannels>;
using V = hn::Vec<D>;
constexpr size_t kIn = metrics::kWinogradIn, kOut = metrics::kWinogradOut;

HWY_INLINE V Times(float factor, V x) {
  return hn::Mul(hn::Set(D(), factor), x);
}

// Six inputs of a row or column to six points.
HWY_INLINE void ToPoints(const V (&x)[kIn], V (&p)[kIn]) {
  p[0] = hn::Add(hn::Sub(Times(4, x[0]), Times(5, x[2])), x[4]);
  const V even = hn::Sub(x[4], Times(4, x[2])), odd = hn::Sub(x[3], Times(4, x[1]));
  p[1] = hn::Add(even, odd);
  p[2] = hn::Sub(even, odd);
  const V even2 = hn::Sub(x[4], x[2]), odd2 = Times(2, hn::Sub(x[3], x[1]));
  p[3] = hn::Add(even2, odd2);
  p[4] = hn::Sub(even2, odd2);
  p[5] = hn::Add(hn::Sub(Times(4, x[1]), Times(5, x[3])), x[5]);
}

// Six points to four outputs.
HWY_INLINE void FromPoints(const V (&p)[kIn], V (&y)[kOut]) {
  const V sum1 = hn::Add(p[1], p[2]), difference1 = hn::Sub(p[1], p[2]);
  const V sum2 = hn::Add(p[3], p[4]), difference2 = hn::Sub(p[3], p[4]);
  y[0] = hn::Add(hn::Add(p[0], sum1), sum2);
  y[1] = hn::Add(difference1, Times(2, difference2));
  y[2] = hn::Add(sum1, Times(4, sum2));
  y[3] = hn::Add(hn::Add(difference1, Times(8, difference2)), p[5]);
}

void Input(const float* const* in, size_t channels, float* points, size_t stride) {
  const D d;
  for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
    V columns[kIn][kIn];  // [column of inputs][point along time]
    for (size_t j = 0; j < kIn; ++j) {
      V x[kIn];
      for (size_t i = 0; i < kIn; ++i) x[i] = hn::LoadU(d, in[i * kIn + j] + c);
      ToPoints(x, columns[j]);
    }
    for (size_t i = 0; i < kIn; ++i) {
      V x[kIn], p[kIn];
      for (size_t j = 0; j < kIn; ++j) x[j] = columns[j][i];
      ToPoints(x, p);
      for (size_t j = 0; j < kIn; ++j) hn::StoreU(p[j], d, points + (i * kIn + j) * stride + c);
    }
  }
}

void Output(const float* points, size_t stride, const float* bias, size_t channels, float* const* out) {
  const D d;
  for (size_t c = 0; c < channels; c += hn::Lanes(d)) {
    V columns[kIn][kOut];  // [column of points][output along time]
    for (size_t j = 0; j < kIn; ++j) {
      V p[kIn];
      for (size_t i = 0; i < kIn; ++i) p[i] = hn::LoadU(d, points + (i * kIn + j) * stride + c);
      FromPoints(p, columns[j]);
    }
    const V b = hn::LoadU(d, bias + c);
    for (size_t i = 0; i < kOut; ++i) {
      V p[kIn], y[kOut];
      for (size_t j = 0; j < kIn; ++j) p[j] = columns[j][i];
      FromPoints(p, y);
      for (size_t j = 0; j < kOut; ++j) {
        hn::StoreU(hn::Max(hn::Add(y[j], b), hn::Zero(d)), d, out[i * kOut + j] + c);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {
HWY_EXPORT(Input);
HWY_EXPORT(Output);
}  // namespace
namespace metrics {

void winograd_input(const float* const* in, std::size_t channels, float* points, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(Input)(in, channels, points, stride);
}

void winograd_output(const float* points, std::size_t stride, const float* bias, std::size_t channels,
                     float* const* out) {
  HWY_DYNAMIC_DISPATCH(Output)(points, stride, bias, channels, out);
}

}  // namespace metrics
}  // namespace tessera
#endif
