// The gates of an LSTM cell over the vector functions of simd_math-inl.h.
#include "core/lstm.h"

#include <string>

#include "core/error.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/lstm.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd_math-inl.h"
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

void CellKernel(const float* gates, float* cell, float* out, size_t hidden) {
  const hn::ScalableTag<float> d;
  ForEachVector(d, hidden, [&](size_t i, size_t n) HWY_ATTR {
    const auto input = Sigmoid(d, LoadFirst(d, gates + i, n));
    const auto forget = Sigmoid(d, LoadFirst(d, gates + hidden + i, n));
    const auto candidate = Tanh(d, LoadFirst(d, gates + 2 * hidden + i, n));
    const auto output = Sigmoid(d, LoadFirst(d, gates + 3 * hidden + i, n));
    const auto next = Fma(d, forget, LoadFirst(d, cell + i, n), hn::Mul(input, candidate));
    StoreFirst(next, d, cell + i, n);
    StoreFirst(hn::Mul(output, Tanh(d, next)), d, out + i, n);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {
HWY_EXPORT(CellKernel);
}  // namespace

void lstm_cell(const float* gates, float* cell, float* out, int hidden) {
  if (hidden < 0) fail("lstm_cell", "hidden >= 0", std::to_string(hidden));
  HWY_DYNAMIC_DISPATCH(CellKernel)(gates, cell, out, static_cast<std::size_t>(hidden));
}

}  // namespace tessera
#endif  // HWY_ONCE
