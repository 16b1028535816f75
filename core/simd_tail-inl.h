// The last, incomplete vector of an array: loaded and stored through a buffer, so that the elements there
// take the same vector arithmetic as all others and nothing outside the array is touched. Included inside
// foreach_target.
#if defined(TESSERA_CORE_SIMD_TAIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_CORE_SIMD_TAIL_INL_H_
#undef TESSERA_CORE_SIMD_TAIL_INL_H_
#else
#define TESSERA_CORE_SIMD_TAIL_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The first `count` <= Lanes(d) elements at x; the lanes behind them hold `pad`.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* x, size_t count, T pad = T(0)) {
  if (count >= hn::Lanes(d)) return hn::LoadU(d, x);
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  hn::Store(hn::Set(d, pad), d, buffer);
  std::memcpy(buffer, x, count * sizeof(T));
  return hn::Load(d, buffer);
}

/// Writes the first `count` <= Lanes(d) lanes to y.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(hn::Vec<D> v, D d, T* y, size_t count) {
  if (count >= hn::Lanes(d)) return hn::StoreU(v, d, y);
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  hn::Store(v, d, buffer);
  std::memcpy(y, buffer, count * sizeof(T));
}

/// body(i, n) for each vector of [0, count): n is Lanes(d), except for what is left at the end.
template <class D, class Body>
HWY_INLINE void ForEachVector(D d, size_t count, const Body& body) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) body(i, lanes);
  if (i < count) body(i, count - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
