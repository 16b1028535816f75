// The element-wise functions of activation.h over the vector polynomials of simd_math-inl.h.
#include "core/activation.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/activation.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd_math-inl.h"
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class Function>
HWY_INLINE void Map(const float* x, float* y, size_t count, const Function& f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < count) StoreFirst(f(LoadFirst(d, x + i, count - i)), d, y + i, count - i);
}

/// x * sigmoid(s), where very negative s, -inf included, gives 0.
HWY_INLINE V TimesSigmoid(V x, V minus_s) {
  const D d;
  return hn::Div(AtLeast(d, x, -200.0f), hn::Add(hn::Set(d, 1.0f), Exp(d, minus_s)));
}

HWY_INLINE V SignedSqrt(V x) {
  const D d;
  const V root = hn::Sqrt(hn::Add(hn::Abs(x), hn::Set(d, 1e-9f)));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::CopySign(root, x));
}

/// 0 where the square would not be a normal number.
HWY_INLINE V SignedSquare(V x) {
  const D d;
  const V a = hn::Abs(x);
  return hn::Mul(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0x1p-63f)), hn::CopySign(hn::Zero(d), x), x), a);
}

HWY_INLINE V GeluTanh(V x) {
  const D d;
  // -2 sqrt(2 / pi) x (1 + 0.044715 x^2): 1/2 (1 + tanh u) is sigmoid(2 u).
  const V inner = Fma(d, hn::Mul(x, hn::Set(d, -0.0713548163f)), x, hn::Set(d, -1.59576912f));
  return TimesSigmoid(x, hn::Mul(x, inner));
}

void ActivateKernel(Activation f, const float* x, float* y, size_t count) {
  const D d;
  switch (f) {
    case Activation::none:
      if (x != y && count > 0) std::memmove(y, x, count * sizeof(float));
      return;
    case Activation::elu:
      return Map(x, y, count,
                 [d](V v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, Expm1(d, v)); });
    case Activation::gelu:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Gelu(d, v); });
    case Activation::gelu_tanh:
      return Map(x, y, count, [](V v) HWY_ATTR { return GeluTanh(v); });
    case Activation::silu:
      return Map(x, y, count, [](V v) HWY_ATTR { return TimesSigmoid(v, hn::Neg(v)); });
    case Activation::relu:
      return Map(x, y, count, [d](V v) HWY_ATTR { return AtLeast(d, v, 0.0f); });
    case Activation::leaky_relu:
      return Map(x, y, count, [d](V v) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, hn::Set(d, 0.01f)), v);
      });
    case Activation::tanh:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Tanh(d, v); });
    case Activation::sigmoid:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Sigmoid(d, v); });
    case Activation::exp:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Exp(d, v); });
    case Activation::sin:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Sin(d, v); });
    case Activation::cos:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Cos(d, v); });
    case Activation::erf:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Erf(d, v); });
    case Activation::log:
      return Map(x, y, count, [d](V v) HWY_ATTR { return Log(d, v); });
    case Activation::signed_sqrt:
      return Map(x, y, count, [](V v) HWY_ATTR { return SignedSqrt(v); });
    case Activation::signed_square:
      return Map(x, y, count, [](V v) HWY_ATTR { return SignedSquare(v); });
  }
}

void SnakeKernel(const float* x, const float* alpha, float* y, size_t rows, size_t channels) {
  const D d;
  // One division serves a channel in all rows; the factors of a block of channels stay in the nearest cache.
  constexpr size_t kBlock = 512;
  HWY_ALIGN float inverse[kBlock];
  for (size_t first = 0; first < channels; first += kBlock) {
    const size_t width = std::min(kBlock, channels - first);
    ForEachVector(d, width, [&](size_t c, size_t n) HWY_ATTR {
      const V a = LoadFirst(d, alpha + first + c, n);
      hn::Store(hn::Div(hn::Set(d, 1.0f), hn::Add(a, hn::Set(d, 1e-9f))), d, inverse + c);
    });
    for (size_t t = 0; t < rows; ++t) {
      const size_t row = t * channels + first;
      ForEachVector(d, width, [&](size_t c, size_t n) HWY_ATTR {
        const V v = LoadFirst(d, x + row + c, n);
        const V s = Sin(d, hn::Mul(LoadFirst(d, alpha + first + c, n), v));
        StoreFirst(Fma(d, hn::Mul(s, hn::Load(d, inverse + c)), s, v), d, y + row + c, n);
      });
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

HWY_EXPORT(ActivateKernel);
HWY_EXPORT(SnakeKernel);

std::size_t checked_channels(const char* op, int channels) {
  if (channels < 0) fail(op, "channels >= 0", std::to_string(channels));
  return static_cast<std::size_t>(channels);
}

}  // namespace

void activate(Activation f, const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(ActivateKernel)(f, x, y, count);
}

void snake(const float* x, const float* alpha, float* y, std::size_t rows, int channels) {
  HWY_DYNAMIC_DISPATCH(SnakeKernel)(x, alpha, y, rows, checked_channels("snake", channels));
}

// The next three are bound by memory and have one rounding per operation: plain loops do.
void add(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
}

void scale_channels(const float* scale, float* y, std::size_t rows, int channels) {
  const std::size_t width = checked_channels("scale_channels", channels);
  for (std::size_t t = 0; t < rows; ++t) {
    for (std::size_t c = 0; c < width; ++c) y[t * width + c] *= scale[c];
  }
}

void ramp(float from, float to, float* y, std::size_t rows, int channels) {
  const std::size_t width = checked_channels("ramp", channels);
  for (std::size_t t = 0; t < rows; ++t) {
    const float done = static_cast<float>(t + 1) / static_cast<float>(rows);
    const float gain = from * (1.0f - done) + to * done;
    for (std::size_t c = 0; c < width; ++c) y[t * width + c] *= gain;
  }
}

}  // namespace tessera
#endif  // HWY_ONCE
