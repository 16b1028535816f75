// The kernels of nsim.h. Lanes run across bands and products are not fused: the same bits for any vector
// length.
#include "core/simd.h"
#include "metrics/nsim.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/nsim_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using metrics::NeighbourSums;
using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;

// The Gaussian of 3 x 3: corners, edges, centre.
constexpr double kCorner = 0.0113033910173052, kEdge = 0.0838251475442633, kCentre = 0.619485845753726;
constexpr double kC1 = 0.0001, kC3 = 0.00045;  // (0.01)^2 and (0.03)^2 / 2

// side[b] and middle[b] of the product of two rows; `row` has stride + 2 elements.
void RowSums(const double* x, const double* y, size_t bands, size_t stride, double* row, double* side,
             double* middle) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (size_t b = 0; b < stride; b += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + b), hn::LoadU(d, y + b)), d, row + 1 + b);
  }
  row[0] = row[1];
  row[bands + 1] = row[bands];
  const V corner = hn::Set(d, kCorner), edge = hn::Set(d, kEdge), centre = hn::Set(d, kCentre);
  for (size_t b = 0; b < stride; b += lanes) {
    const V at = hn::LoadU(d, row + b + 1);
    const V around = hn::Add(hn::LoadU(d, row + b), hn::LoadU(d, row + b + 2));
    hn::StoreU(hn::Add(hn::Mul(corner, around), hn::Mul(edge, at)), d, side + b);
    hn::StoreU(hn::Add(hn::Mul(edge, around), hn::Mul(centre, at)), d, middle + b);
  }
}

// `row` has stride + 2 elements, `side`, `middle` and `map` [frames, stride].
void SimilarityMap(const NeighbourSums& reference, size_t reference_begin, const NeighbourSums& degraded,
                   size_t degraded_begin, size_t frames, double* row, double* side, double* middle,
                   double* map) {
  const D d;
  const size_t stride = reference.stride, r = reference_begin * stride, g = degraded_begin * stride;
  for (size_t at = 0; at < frames * stride; at += stride) {
    RowSums(reference.values.data() + r + at, degraded.values.data() + g + at, reference.bands, stride, row,
            side + at, middle + at);
  }
  const V c1 = hn::Set(d, kC1), c3 = hn::Set(d, kC3), two = hn::Set(d, 2.0);
  for (size_t t = 0; t < frames; ++t) {
    const size_t before = t == 0 ? 0 : t - 1, after = t + 1 == frames ? t : t + 1;
    for (size_t b = 0; b < stride; b += hn::Lanes(d)) {
      const auto mean = [&](const double* beside, const double* within) HWY_ATTR {
        return hn::Add(
            hn::Add(hn::LoadU(d, beside + before * stride + b), hn::LoadU(d, beside + after * stride + b)),
            hn::LoadU(d, within + t * stride + b));
      };
      const V u = mean(reference.side.data() + r, reference.middle.data() + r);
      const V v = mean(degraded.side.data() + g, degraded.middle.data() + g);
      const V uu = hn::Mul(u, u), vv = hn::Mul(v, v), uv = hn::Mul(u, v);
      const V var_u =
          hn::Sub(mean(reference.side_of_squares.data() + r, reference.middle_of_squares.data() + r), uu);
      const V var_v =
          hn::Sub(mean(degraded.side_of_squares.data() + g, degraded.middle_of_squares.data() + g), vv);
      const V covariance = hn::Sub(mean(side, middle), uv);
      // Rounding can make the variance of a flat neighbourhood negative.
      const V deviations = hn::Sqrt(hn::Max(hn::Mul(var_u, var_v), hn::Zero(d)));
      const V above = hn::Mul(hn::Add(hn::Mul(two, uv), c1), hn::Add(covariance, c3));
      const V below = hn::Mul(hn::Add(hn::Add(uu, vv), c1), hn::Add(deviations, c3));
      hn::StoreU(hn::Div(above, below), d, map + t * stride + b);
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
HWY_EXPORT(RowSums);
HWY_EXPORT(SimilarityMap);
}  // namespace
namespace metrics {

NeighbourSums::NeighbourSums(const Spectrogram& spectrogram, std::size_t silence)
    : frames(spectrogram.frames + silence), bands(spectrogram.bands), stride((bands + 7) / 8 * 8) {
  for (auto* array : {&values, &side, &middle, &side_of_squares, &middle_of_squares}) {
    array->resize(frames * stride);
  }
  std::vector<double> row(stride + 2), ones(stride, 1.0);
  for (std::size_t t = 0; t < spectrogram.frames; ++t) {
    const std::size_t at = t * stride;
    double* x = values.data() + at;
    for (std::size_t b = 0; b < bands; ++b) x[b] = spectrogram.values[t * bands + b];
    HWY_DYNAMIC_DISPATCH(RowSums)
    (x, ones.data(), bands, stride, row.data(), side.data() + at, middle.data() + at);
    HWY_DYNAMIC_DISPATCH(RowSums)
    (x, x, bands, stride, row.data(), side_of_squares.data() + at, middle_of_squares.data() + at);
  }
}

double similarity(const NeighbourSums& reference, std::size_t reference_begin, const NeighbourSums& degraded,
                  std::size_t degraded_begin, std::size_t frames, std::vector<double>& map) {
  const std::size_t stride = reference.stride, size = frames * stride;
  map.resize(3 * size + 2 * stride + 2);
  double *side = map.data() + size, *middle = side + size, *row = middle + size, *sums = row + stride + 2;
  HWY_DYNAMIC_DISPATCH(SimilarityMap)
  (reference, reference_begin, degraded, degraded_begin, frames, row, side, middle, map.data());
  for (std::size_t b = 0; b < stride; ++b) sums[b] = 0;
  for (std::size_t t = 0; t < frames; ++t) {
    for (std::size_t b = 0; b < stride; ++b) sums[b] += map[t * stride + b];
  }
  double sum = 0;
  for (std::size_t b = 0; b < reference.bands; ++b) sum += sums[b];
  return sum / static_cast<double>(frames * reference.bands);
}

}  // namespace metrics
}  // namespace tessera
#endif
