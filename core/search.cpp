// Row-wise argmax: vector lanes run across the columns; the winner of a row does not depend on how many there
// are.
#include "core/search.h"

#include <cmath>
#include <string>

#include "core/error.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/search.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;

/// Index of the largest of x[0..count), the lowest on a tie; -1 if nothing is above -inf.
HWY_INLINE std::int32_t ArgmaxAboveInfinity(const float* x, size_t count) {
  const D d;
  const DI di;
  auto best = hn::Set(d, -HUGE_VALF);
  auto index = hn::Set(di, -1);
  auto column = hn::Iota(di, 0);
  const auto step = hn::Set(di, static_cast<std::int32_t>(hn::Lanes(di)));
  ForEachVector(d, count, [&](size_t c, size_t n) HWY_ATTR {
    const auto v = LoadFirst(d, x + c, n, -HUGE_VALF);
    const auto above = hn::Gt(v, best);  // false for NaN, and for a later equal value
    best = hn::IfThenElse(above, v, best);
    index = hn::IfThenElse(hn::RebindMask(di, above), column, index);
    column = hn::Add(column, step);
  });
  HWY_ALIGN float values[hn::MaxLanes(D())];
  HWY_ALIGN std::int32_t indices[hn::MaxLanes(D())];
  hn::Store(best, d, values);
  hn::Store(index, di, indices);
  size_t winner = 0;
  for (size_t i = 1; i < hn::Lanes(d); ++i) {
    const bool tie = values[i] == values[winner] && indices[i] < indices[winner];
    if (values[i] > values[winner] || tie) winner = i;
  }
  return indices[winner];
}

void ArgmaxKernel(const float* scores, size_t rows, size_t count, std::ptrdiff_t stride,
                  std::int32_t* indices) {
  for (size_t t = 0; t < rows; ++t) {
    const float* x = scores + static_cast<std::ptrdiff_t>(t) * stride;
    indices[t] = ArgmaxAboveInfinity(x, count);
    if (indices[t] >= 0) continue;
    // Nothing but -inf and NaN: the first -inf, if there is one.
    indices[t] = 0;
    for (size_t c = count; c-- > 0;) {
      if (x[c] == -HUGE_VALF) indices[t] = static_cast<std::int32_t>(c);
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
HWY_EXPORT(ArgmaxKernel);
}  // namespace

void argmax_rows(const float* scores, std::size_t rows, int count, std::ptrdiff_t stride,
                 std::int32_t* indices) {
  if (count < 1) fail("argmax_rows", "at least one column", std::to_string(count));
  HWY_DYNAMIC_DISPATCH(ArgmaxKernel)(scores, rows, static_cast<std::size_t>(count), stride, indices);
}

}  // namespace tessera
#endif  // HWY_ONCE
