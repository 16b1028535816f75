// Per-target helpers shared by the kernel files; included inside foreach_target (no normal include guard).
// Fma() is the one multiply-add of the library: Highway's own MulAdd rounds twice on targets without the
// instruction.
#if defined(TESSERA_CORE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CORE_SIMD_INL_H_
#undef TESSERA_CORE_SIMD_INL_H_
#else
#define TESSERA_CORE_SIMD_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3

/// The double nearest to product + c, but with its last bit set if that is not the exact sum ("round to
/// odd"): a second rounding, to f32, then gives what one rounding of the exact sum gives (Boldo and Melquiond
/// 2008).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AddRoundingToOdd(D d, V product, V c) {
  const hn::RebindToSigned<D> di;
  const V sum = hn::Add(product, c);
  const V part = hn::Sub(sum, product);
  const V error = hn::Add(hn::Sub(product, hn::Sub(sum, part)), hn::Sub(c, part));  // Knuth's exact remainder
  const auto bits = hn::BitCast(di, sum);
  const auto one = hn::Set(di, 1);
  // One step towards the exact sum: away from zero if the remainder has the sum's sign.
  const auto step = hn::Or(hn::BroadcastSignBit(hn::Xor(bits, hn::BitCast(di, error))), one);
  const auto inexact = hn::RebindMask(di, hn::Gt(hn::Abs(error), hn::Zero(d)));  // false for infinite sums
  const auto even = hn::Eq(hn::And(bits, one), hn::Zero(di));
  return hn::BitCast(d, hn::Add(bits, hn::IfThenElseZero(hn::And(inexact, even), step)));
}

#endif

/// a * b + c rounded once on every target: the instruction where there is one, else exact products in double,
/// else std::fma lane by lane (slow, and the same bits).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Fma(D d, V a, V b, V c) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  static_assert(sizeof(hn::TFromD<D>) == 4 && hn::MaxLanes(D()) == 4);
  const hn::Half<D> half;
  const hn::Repartition<double, D> dd;
  const auto low = AddRoundingToOdd(
      dd, hn::Mul(hn::PromoteTo(dd, hn::LowerHalf(half, a)), hn::PromoteTo(dd, hn::LowerHalf(half, b))),
      hn::PromoteTo(dd, hn::LowerHalf(half, c)));
  const auto high = AddRoundingToOdd(
      dd, hn::Mul(hn::PromoteTo(dd, hn::UpperHalf(half, a)), hn::PromoteTo(dd, hn::UpperHalf(half, b))),
      hn::PromoteTo(dd, hn::UpperHalf(half, c)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
#elif HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  using T = hn::TFromD<D>;
  HWY_ALIGN T x[hn::MaxLanes(D())], y[hn::MaxLanes(D())], z[hn::MaxLanes(D())];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < hn::Lanes(d); ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#else
  (void)d;
  return hn::MulAdd(a, b, c);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
