// The kernels of row_kernels.h and sums.h. Sums along a row are fixed_sum and fixed_dot; lanes run over the
// channels otherwise.
#include "core/autograd/row_kernels.h"

#include <cmath>
#include <cstring>

#include "core/autograd/sums.h"
#include "core/norm.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/autograd/rows_cpu.cpp"
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

void ColumnSumsKernel(const float* x, const float* y, size_t rows, size_t stride, size_t channels,
                      float* sums) {
  const D d;
  // Four rows per pass over the sums: each sum still takes its rows one after another.
  constexpr size_t kTogether = 4;
  for (size_t t = 0; t < rows; t += kTogether) {
    const size_t together = rows - t < kTogether ? rows - t : kTogether;
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      V sum = t > 0 ? LoadFirst(d, sums + c, n) : hn::Zero(d);
      for (size_t i = 0; i < together; ++i) {
        const size_t at = (t + i) * stride + c;
        const V v = LoadFirst(d, x + at, n);
        sum = y ? Fma(d, v, LoadFirst(d, y + at, n), sum) : hn::Add(sum, v);
      }
      StoreFirst(sum, d, sums + c, n);
    });
  }
}

void L2NormalizeKernel(const float* x, float eps, float* y, float* inverse, size_t rows, size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, x += channels, y += channels) {
    inverse[t] = 1.0f / std::sqrt(fixed_dot(x, x, channels) + eps);
    const V scale = hn::Set(d, inverse[t]);
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(hn::Mul(LoadFirst(d, x + c, n), scale), d, y + c, n);
    });
  }
}

void L2NormalizeGradientKernel(const float* g, const float* y, const float* inverse, float* dx, size_t rows,
                               size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, g += channels, y += channels, dx += channels) {
    const V along = hn::Set(d, -fixed_dot(g, y, channels)), scale = hn::Set(d, inverse[t]);
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      const V across = Fma(d, LoadFirst(d, y + c, n), along, LoadFirst(d, g + c, n));
      StoreFirst(hn::Mul(across, scale), d, dx + c, n);
    });
  }
}

void LayerNormGradientKernel(const float* g, const float* x, const float* weight, float eps, float* dx,
                             float* normal, size_t rows, size_t channels) {
  const D d;
  const float count = static_cast<float>(channels);
  for (size_t t = 0; t < rows; ++t, g += channels, x += channels, dx += channels, normal += channels) {
    const V mean = hn::Set(d, fixed_sum(x, channels) / count);
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(hn::Sub(LoadFirst(d, x + c, n), mean), d, normal + c, n);
    });
    const V scale = hn::Set(d, 1.0f / std::sqrt(fixed_dot(normal, normal, channels) / count + eps));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(hn::Mul(LoadFirst(d, normal + c, n), scale), d, normal + c, n);
      StoreFirst(hn::Mul(LoadFirst(d, g + c, n), LoadFirst(d, weight + c, n)), d, dx + c, n);
    });
    // What is left of the gradient once its parts along 1 and along the normalized row are taken away.
    const V level = hn::Set(d, fixed_sum(dx, channels) / count);
    const V along = hn::Set(d, -(fixed_dot(dx, normal, channels) / count));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      const V rest = hn::Sub(LoadFirst(d, dx + c, n), level);
      StoreFirst(hn::Mul(Fma(d, LoadFirst(d, normal + c, n), along, rest), scale), d, dx + c, n);
    });
  }
}

void SoftmaxGradientKernel(const float* g, const float* y, float* dx, size_t rows, size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, g += channels, y += channels, dx += channels) {
    const V mean = hn::Set(d, fixed_dot(g, y, channels));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(hn::Mul(LoadFirst(d, y + c, n), hn::Sub(LoadFirst(d, g + c, n), mean)), d, dx + c, n);
    });
  }
}

/// The largest of x, NaN ignored; any order gives the same.
HWY_INLINE float Largest(const float* x, size_t count) {
  const D d;
  V best = hn::Neg(hn::Inf(d));
  ForEachVector(d, count, [&](size_t c, size_t n) HWY_ATTR {
    const V v = LoadFirst(d, x + c, n, x[0]);
    best = hn::IfThenElse(hn::Gt(v, best), v, best);
  });
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(best, d, lanes);
  float largest = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

void CrossEntropyKernel(const float* x, const int32_t* targets, float* p, float* loss, size_t rows,
                        size_t channels) {
  const D d;
  for (size_t t = 0; t < rows; ++t, x += channels, p += channels) {
    if (targets[t] < 0) {
      loss[t] = 0.0f;
      std::memset(p, 0, channels * sizeof(float));
      continue;
    }
    const float largest = Largest(x, channels);
    const V top = hn::Set(d, largest);
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(Exp(d, hn::Sub(LoadFirst(d, x + c, n), top)), d, p + c, n);
    });
    const V sum = hn::Set(d, fixed_sum(p, channels));
    ForEachVector(d, channels, [&](size_t c, size_t n) HWY_ATTR {
      StoreFirst(hn::Div(LoadFirst(d, p + c, n), sum), d, p + c, n);
    });
    loss[t] = hn::GetLane(Log(d, sum)) + (largest - x[targets[t]]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(ColumnSumsKernel);
HWY_EXPORT(L2NormalizeKernel);
HWY_EXPORT(L2NormalizeGradientKernel);
HWY_EXPORT(LayerNormGradientKernel);
HWY_EXPORT(SoftmaxGradientKernel);
HWY_EXPORT(CrossEntropyKernel);

}  // namespace

void ops::column_sums_block(const float* x, const float* y, std::size_t rows, std::size_t stride,
                            std::size_t channels, float* sums) {
  HWY_DYNAMIC_DISPATCH(ColumnSumsKernel)(x, y, rows, stride, channels, sums);
}

void ops::l2_normalize_rows(const float* x, float eps, float* y, float* inverse, std::size_t rows,
                            std::size_t channels) {
  HWY_DYNAMIC_DISPATCH(L2NormalizeKernel)(x, eps, y, inverse, rows, channels);
}

void ops::l2_normalize_gradient(const float* g, const float* y, const float* inverse, float* dx,
                                std::size_t rows, std::size_t channels) {
  HWY_DYNAMIC_DISPATCH(L2NormalizeGradientKernel)(g, y, inverse, dx, rows, channels);
}

void ops::layer_norm_gradient(const float* g, const float* x, const float* weight, float eps, float* dx,
                              float* normal, std::size_t rows, std::size_t channels) {
  HWY_DYNAMIC_DISPATCH(LayerNormGradientKernel)(g, x, weight, eps, dx, normal, rows, channels);
}

void ops::softmax_gradient(const float* g, const float* y, float* dx, std::size_t rows,
                           std::size_t channels) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradientKernel)(g, y, dx, rows, channels);
}

void ops::cross_entropy_rows(const float* x, const std::int32_t* targets, float* p, float* loss,
                             std::size_t rows, std::size_t channels) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyKernel)(x, targets, p, loss, rows, channels);
}

}  // namespace tessera
#endif  // HWY_ONCE
