// Row sums, normalizations and softmax: docs/determinism.md states the order of each sum. Vector lanes are
// partial sums here, always 16 of them; sums of squares and means are never taken in one pass.
#include "core/norm.h"

#include <cmath>
#include <string>

#include "core/error.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/norm.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd_math-inl.h"
#include "core/simd_tail-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kPartialSums = 16;
using D = hn::ScalableTag<float>;
/// Vectors whose lanes together are the partial sums; no vector is longer than all of them.
using SumTag = hn::CappedTag<float, kPartialSums>;

/// Folds step(sum, x[i], y[i]) over the elements: element i into partial sum i mod 16, each from `start`. The
/// last block is filled up with `pad`, on which step must leave a sum as it is.
template <class Step>
HWY_INLINE float FoldSums(const float* x, const float* y, size_t count, float pad, float start,
                          const Step& step) {
  const SumTag d;
  constexpr size_t kLanes = hn::MaxLanes(SumTag());
  constexpr size_t kVectors = kPartialSums / kLanes;
  hn::Vec<SumTag> sums[kVectors];
  for (auto& sum : sums) sum = hn::Set(d, start);
  size_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    for (size_t v = 0; v < kVectors; ++v) {
      sums[v] = step(sums[v], hn::LoadU(d, x + i + v * kLanes), hn::LoadU(d, y + i + v * kLanes));
    }
  }
  for (size_t v = 0; i < count; ++v, i += kLanes) {
    sums[v] = step(sums[v], LoadFirst(d, x + i, count - i, pad), LoadFirst(d, y + i, count - i, pad));
  }
  HWY_ALIGN float tree[kPartialSums];
  for (size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], d, tree + v * kLanes);
  for (size_t half = kPartialSums / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) tree[j] += tree[j + half];
  }
  return tree[0];
}

float SumKernel(const float* x, size_t count) {
  return FoldSums(x, x, count, 0.0f, 0.0f, [](auto sum, auto a, auto) HWY_ATTR { return hn::Add(sum, a); });
}

float DotKernel(const float* x, const float* y, size_t count) {
  const SumTag d;
  return FoldSums(x, y, count, 0.0f, 0.0f,
                  [d](auto sum, auto a, auto b) HWY_ATTR { return Fma(d, a, b, sum); });
}

/// Largest value, NaN ignored; `lowest` for none. Any order gives the same.
template <class Value>
HWY_INLINE float Largest(const float* x, size_t count, float lowest, const Value& value) {
  const D d;
  auto best = hn::Set(d, lowest);
  ForEachVector(d, count, [&](size_t i, size_t n) HWY_ATTR {
    const auto v = value(LoadFirst(d, x + i, n, lowest));
    best = hn::IfThenElse(hn::Gt(v, best), v, best);
  });
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(best, d, lanes);
  float largest = lowest;
  for (size_t i = 0; i < hn::Lanes(d); ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

float MaxAbsKernel(const float* x, size_t count) {
  return Largest(x, count, 0.0f, [](auto v) HWY_ATTR { return hn::Abs(v); });
}

/// 1 / sqrt(mean((x - centre)^2) + eps). eps enters as the start of the partial sums: that also keeps the
/// squares of very quiet input from being subnormal numbers, which are slow on some CPUs.
HWY_INLINE float InverseDeviation(const float* x, size_t count, float centre, float eps) {
  const SumTag d;
  const float n = static_cast<float>(count);
  const auto middle = hn::Set(d, centre);
  const float sum = FoldSums(x, x, count, centre, eps * n / static_cast<float>(kPartialSums),
                             [&](auto sums, auto a, auto) HWY_ATTR {
                               const auto difference = hn::Sub(a, middle);
                               return Fma(d, difference, difference, sums);
                             });
  return 1.0f / std::sqrt(sum / n);
}

void LayerNormKernel(const float* x, const float* weight, const float* bias, float eps, float* y, size_t rows,
                     size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, x += channels, y += channels) {
    const float mean = SumKernel(x, channels) / static_cast<float>(channels);
    const auto middle = hn::Set(d, mean);
    const auto scale = hn::Set(d, InverseDeviation(x, channels, mean, eps));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(LoadFirst(d, x + c, n), middle), scale);
      const auto w = LoadFirst(d, weight + c, n);
      const auto out = bias ? Fma(d, normal, w, LoadFirst(d, bias + c, n)) : hn::Mul(normal, w);
      StoreFirst(out, d, y + c, n);
    });
  }
}

void RmsNormKernel(const float* x, const float* weight, float eps, float* y, size_t rows, size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, x += channels, y += channels) {
    const auto scale = hn::Set(d, InverseDeviation(x, channels, 0.0f, eps));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      const auto normal = hn::Mul(LoadFirst(d, x + c, n), scale);
      StoreFirst(hn::Mul(normal, LoadFirst(d, weight + c, n)), d, y + c, n);
    });
  }
}

void SoftmaxKernel(float* x, size_t rows, size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, x += channels) {
    const float largest = Largest(x, channels, -HUGE_VALF, [](auto v) HWY_ATTR { return v; });
    const auto top = hn::Set(d, largest);
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(Exp(d, hn::Sub(LoadFirst(d, x + c, n), top)), d, x + c, n);
    });
    const auto sum = hn::Set(d, SumKernel(x, channels));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(hn::Div(LoadFirst(d, x + c, n), sum), d, x + c, n);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(SumKernel);
HWY_EXPORT(DotKernel);
HWY_EXPORT(MaxAbsKernel);
HWY_EXPORT(LayerNormKernel);
HWY_EXPORT(RmsNormKernel);
HWY_EXPORT(SoftmaxKernel);

std::size_t checked_channels(const char* op, int channels) {
  if (channels < 0) fail(op, "channels >= 0", std::to_string(channels));
  return static_cast<std::size_t>(channels);
}

}  // namespace

float fixed_sum(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SumKernel)(x, count);
}

float fixed_dot(const float* x, const float* y, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(DotKernel)(x, y, count);
}

float max_abs(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(MaxAbsKernel)(x, count);
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, float* y, std::size_t rows,
                int channels) {
  const std::size_t width = checked_channels("layer_norm", channels);
  HWY_DYNAMIC_DISPATCH(LayerNormKernel)(x, weight, bias, eps, y, rows, width);
}

void rms_norm(const float* x, const float* weight, float eps, float* y, std::size_t rows, int channels) {
  HWY_DYNAMIC_DISPATCH(RmsNormKernel)(x, weight, eps, y, rows, checked_channels("rms_norm", channels));
}

void softmax(float* x, std::size_t rows, int channels) {
  HWY_DYNAMIC_DISPATCH(SoftmaxKernel)(x, rows, checked_channels("softmax", channels));
}

}  // namespace tessera
#endif  // HWY_ONCE
