// Per-target helpers shared by the kernel files; included inside foreach_target (no normal include guard).
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

/// a * b + c rounded once on every target. Highway's scalar and SSE targets round twice: there each lane goes
/// through std::fma (slow, and the same bits).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Fma(D d, V a, V b, V c) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
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
