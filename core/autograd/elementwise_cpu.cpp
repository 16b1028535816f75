// The kernels of elementwise_kernels.h. Derivatives are written so that they stay finite where their function
// is: arguments are limited where the derivative has reached its limit.
#include "core/autograd/elementwise_kernels.h"

#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/autograd/elementwise_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd_math-inl.h"
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

using ops::Binary;
using ops::Slope;
using ops::Unary;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class Function>
HWY_INLINE void Map(const float* x, float* y, size_t count, const Function& f) {
  const D d;
  ForEachVector(d, count,
                [&](size_t i, size_t n) HWY_ATTR { StoreFirst(f(LoadFirst(d, x + i, n)), d, y + i, n); });
}

template <class Function>
HWY_INLINE void Map2(const float* a, const float* b, float* y, size_t count, const Function& f) {
  const D d;
  ForEachVector(d, count, [&](size_t i, size_t n) HWY_ATTR {
    StoreFirst(f(LoadFirst(d, a + i, n), LoadFirst(d, b + i, n)), d, y + i, n);
  });
}

void BinaryKernel(Binary op, const float* a, const float* b, float* y, size_t count) {
  switch (op) {
    case Binary::add:
      return Map2(a, b, y, count, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
    case Binary::sub:
      return Map2(a, b, y, count, [](V u, V v) HWY_ATTR { return hn::Sub(u, v); });
    case Binary::mul:
      return Map2(a, b, y, count, [](V u, V v) HWY_ATTR { return hn::Mul(u, v); });
    case Binary::div:
      return Map2(a, b, y, count, [](V u, V v) HWY_ATTR { return hn::Div(u, v); });
  }
}

void BinaryRowsKernel(Binary op, const float* x, const float* row, float* y, size_t rows, size_t channels) {
  // Narrow rows are taken several at a time, against as many copies of `row`.
  constexpr size_t kWide = 256;
  HWY_ALIGN float copies[2 * kWide];
  size_t together = 1;
  if (channels < kWide && rows > 1) {
    together = 2 * kWide / channels;
    for (size_t i = 0; i < together * channels; ++i) copies[i] = row[i % channels];
    row = copies;
  }
  for (size_t t = 0; t < rows; t += together) {
    const size_t count = (rows - t < together ? rows - t : together) * channels;
    BinaryKernel(op, x + t * channels, row, y + t * channels, count);
  }
}

void UnaryKernel(Unary op, const float* x, float* y, size_t count, float p, float q) {
  const D d;
  const V vp = hn::Set(d, p), vq = hn::Set(d, q);
  switch (op) {
    case Unary::affine:
      return Map(x, y, count, [=](V v) HWY_ATTR { return Fma(d, v, vp, vq); });
    case Unary::leaky_relu:
      return Map(x, y, count,
                 [=](V v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(v, vp)); });
    case Unary::abs:
      return Map(x, y, count, [](V v) HWY_ATTR { return hn::Abs(v); });
    case Unary::square:
      return Map(x, y, count, [](V v) HWY_ATTR { return hn::Mul(v, v); });
    case Unary::sqrt:
      return Map(x, y, count, [=](V v) HWY_ATTR { return hn::Sqrt(hn::Add(v, vp)); });
    case Unary::at_least:
      return Map(x, y, count, [=](V v) HWY_ATTR { return AtLeast(d, v, p); });
  }
}

/// x held within [-limit, limit]; NaN stays.
HWY_INLINE V Within(V x, float limit) {
  const D d;
  return AtMost(d, AtLeast(d, x, -limit), limit);
}

/// s + x s (1 - s) u' for the sigmoid s of u: the derivative of x s(u(x)). |u| <= 85, so that e^-u is finite.
HWY_INLINE V GatedSlope(V x, V u, V du) {
  const D d;
  const V one = hn::Set(d, 1.0f), e = Exp(d, hn::Neg(Within(u, 85.0f)));
  const V s = hn::Div(one, hn::Add(one, e));
  return hn::Mul(s, hn::Add(one, hn::Mul(hn::Mul(x, du), hn::Mul(e, s))));
}

HWY_INLINE V GeluSlope(V x) {
  const D d;
  x = Within(x, 12.0f);
  const V tail = NormalTail(d, hn::Abs(x));
  const V below = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0f), tail), tail);
  const V density = hn::Mul(hn::Set(d, 0.398942280f), Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f))));
  return hn::Add(below, hn::Mul(x, density));
}

HWY_INLINE V GeluTanhSlope(V x) {
  const D d;
  x = Within(x, 20.0f);
  const V square = hn::Mul(x, x);
  // u = 2 sqrt(2 / pi) (x + 0.044715 x^3)
  const V u = hn::Mul(x, Fma(d, square, hn::Set(d, 0.0713548163f), hn::Set(d, 1.59576912f)));
  return GatedSlope(x, u, Fma(d, square, hn::Set(d, 0.214064449f), hn::Set(d, 1.59576912f)));
}

void TimesSlopeKernel(Slope slope, const float* r, const float* g, float* dx, size_t count, float p) {
  const D d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f), vp = hn::Set(d, p);
  const auto map = [=](const auto& f) HWY_ATTR { Map2(r, g, dx, count, f); };
  switch (slope) {
    case Slope::elu_y:
      return map([=](V y, V v)
                     HWY_ATTR { return hn::IfThenElse(hn::Gt(y, zero), v, hn::Mul(v, hn::Add(y, one))); });
    case Slope::tanh_y:
      return map([=](V y, V v) HWY_ATTR { return hn::Mul(v, hn::Mul(hn::Sub(one, y), hn::Add(one, y))); });
    case Slope::sigmoid_y:
      return map([=](V y, V v) HWY_ATTR { return hn::Mul(v, hn::Mul(y, hn::Sub(one, y))); });
    case Slope::exp_y:
      return map([](V y, V v) HWY_ATTR { return hn::Mul(v, y); });
    case Slope::step_y:
      return map([=](V y, V v) HWY_ATTR { return hn::IfThenElse(hn::Gt(y, zero), v, hn::Mul(v, vp)); });
    case Slope::signed_sqrt_y:  // |y| is sqrt(1e-9) or more, except for y = 0
      return map([=](V y, V v)
                     HWY_ATTR { return hn::Div(hn::Mul(v, half), AtLeast(d, hn::Abs(y), 3.16227766e-5f)); });
    case Slope::sqrt_y:
      return map([=](V y, V v) HWY_ATTR { return hn::Div(hn::Mul(v, half), y); });
    case Slope::gelu:
      return map([](V x, V v) HWY_ATTR { return hn::Mul(v, GeluSlope(x)); });
    case Slope::gelu_tanh:
      return map([](V x, V v) HWY_ATTR { return hn::Mul(v, GeluTanhSlope(x)); });
    case Slope::silu:
      return map([=](V x, V v) HWY_ATTR {
        x = Within(x, 85.0f);
        return hn::Mul(v, GatedSlope(x, x, one));
      });
    case Slope::sin:
      return map([=](V x, V v) HWY_ATTR { return hn::Mul(v, Cos(d, x)); });
    case Slope::cos:
      return map([=](V x, V v) HWY_ATTR { return hn::Neg(hn::Mul(v, Sin(d, x))); });
    case Slope::erf:
      return map([=](V x, V v) HWY_ATTR {
        return hn::Mul(v, hn::Mul(hn::Set(d, 1.12837917f), Exp(d, hn::Neg(hn::Mul(x, x)))));
      });
    case Slope::log:
      return map([](V x, V v) HWY_ATTR { return hn::Div(v, x); });
    case Slope::signed_square:
      return map([](V x, V v) HWY_ATTR {
        const V a = hn::Abs(x);
        return hn::Mul(v, hn::Add(a, a));
      });
    case Slope::abs:
      return map([=](V x, V v) HWY_ATTR {
        return hn::IfThenElse(hn::Gt(x, zero), v, hn::IfThenElse(hn::Lt(x, zero), hn::Neg(v), hn::Mul(v, x)));
      });
    case Slope::square:
      return map([](V x, V v) HWY_ATTR { return hn::Mul(v, hn::Add(x, x)); });
    case Slope::at_least:
      return map([=](V x, V v) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(x, vp), v); });
  }
}

void DivisorGradientKernel(const float* g, const float* y, const float* b, float* db, size_t count) {
  const D d;
  ForEachVector(d, count, [&](size_t i, size_t n) HWY_ATTR {
    const V product = hn::Mul(LoadFirst(d, g + i, n), LoadFirst(d, y + i, n));
    StoreFirst(hn::Neg(hn::Div(product, LoadFirst(d, b + i, n, 1.0f))), d, db + i, n);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(BinaryKernel);
HWY_EXPORT(BinaryRowsKernel);
HWY_EXPORT(UnaryKernel);
HWY_EXPORT(TimesSlopeKernel);
HWY_EXPORT(DivisorGradientKernel);

}  // namespace

void ops::binary(Binary op, const float* a, const float* b, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(BinaryKernel)(op, a, b, y, count);
}

void ops::binary_rows(Binary op, const float* x, const float* row, float* y, std::size_t rows,
                      std::size_t channels) {
  HWY_DYNAMIC_DISPATCH(BinaryRowsKernel)(op, x, row, y, rows, channels);
}

void ops::unary(Unary op, const float* x, float* y, std::size_t count, float p, float q) {
  HWY_DYNAMIC_DISPATCH(UnaryKernel)(op, x, y, count, p, q);
}

void ops::times_slope(Slope slope, const float* r, const float* g, float* dx, std::size_t count, float p) {
  HWY_DYNAMIC_DISPATCH(TimesSlopeKernel)(slope, r, g, dx, count, p);
}

void ops::divisor_gradient(const float* g, const float* y, const float* b, float* db, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(DivisorGradientKernel)(g, y, b, db, count);
}

}  // namespace tessera
#endif  // HWY_ONCE
