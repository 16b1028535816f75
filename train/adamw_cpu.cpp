// One rounding per operation, no fused ones: the same bits on every instruction set, and memory is what the
// step waits for anyway.
#include "train/adamw_cpu.h"

#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/adamw_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::train {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using tessera::HWY_NAMESPACE::ForEachVector;
using tessera::HWY_NAMESPACE::LoadFirst;
using tessera::HWY_NAMESPACE::StoreFirst;

void UpdateKernel(const AdamWUpdate& u, const float* gradient, float* mean, float* square, float* value,
                  size_t count) {
  const hn::ScalableTag<float> d;
  ForEachVector(d, count, [&](size_t i, size_t n) HWY_ATTR {
    const auto g = hn::Mul(LoadFirst(d, gradient + i, n), hn::Set(d, u.gradient_factor));
    auto m = LoadFirst(d, mean + i, n);
    m = hn::Add(m, hn::Mul(hn::Set(d, u.mean_rate), hn::Sub(g, m)));
    const auto s = hn::Add(hn::Mul(hn::Set(d, u.square_keep), LoadFirst(d, square + i, n)),
                           hn::Mul(hn::Mul(hn::Set(d, u.square_rate), g), g));
    const auto root = hn::Add(hn::Mul(hn::Sqrt(s), hn::Set(d, u.root_factor)), hn::Set(d, u.epsilon));
    const auto step = hn::Div(hn::Mul(hn::Set(d, u.step), m), root);
    const auto v = hn::Sub(hn::Mul(LoadFirst(d, value + i, n), hn::Set(d, u.value_keep)), step);
    StoreFirst(m, d, mean + i, n);
    StoreFirst(s, d, square + i, n);
    StoreFirst(v, d, value + i, n);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::train
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::train {
namespace {
HWY_EXPORT(UpdateKernel);
}  // namespace

void adamw_update(const AdamWUpdate& update, const float* gradient, float* mean, float* square, float* value,
                  std::size_t count) {
  HWY_DYNAMIC_DISPATCH(UpdateKernel)(update, gradient, mean, square, value, count);
}

}  // namespace tessera::train
#endif  // HWY_ONCE
