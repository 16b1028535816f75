// The kernel of gammatone_kernels.h. No fused products: the oldest targets lack them in double.
#include "metrics/gammatone_kernels.h"

#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "metrics/gammatone_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, metrics::kBandLanes>;
using V = hn::Vec<D>;

// One section in transposed direct form II: the second numerator coefficient is 0.
HWY_INLINE V Section(V x, V zero, V pole1, V pole2, V& state1, V& state2) {
  const V y = hn::Add(x, state1);
  state1 = hn::Sub(hn::Add(hn::Mul(zero, x), state2), hn::Mul(pole1, y));
  state2 = hn::Neg(hn::Mul(pole2, y));
  return y;
}

void Energies(const double* frame, size_t samples, const double* coefficients, size_t padded,
              double* energy) {
  const D d;
  for (size_t band = 0; band < padded; band += hn::Lanes(d)) {
    const double* c = coefficients + band;
    const V zero1 = hn::LoadU(d, c), zero2 = hn::LoadU(d, c + padded), zero3 = hn::LoadU(d, c + 2 * padded),
            zero4 = hn::LoadU(d, c + 3 * padded), pole1 = hn::LoadU(d, c + 4 * padded),
            pole2 = hn::LoadU(d, c + 5 * padded);
    V a1 = hn::Zero(d), a2 = a1, b1 = a1, b2 = a1, c1 = a1, c2 = a1, d1 = a1, d2 = a1, sum = a1;
    for (size_t t = 0; t < samples; ++t) {
      V y = Section(hn::Set(d, frame[t]), zero1, pole1, pole2, a1, a2);
      y = Section(y, zero2, pole1, pole2, b1, b2);
      y = Section(y, zero3, pole1, pole2, c1, c2);
      y = Section(y, zero4, pole1, pole2, d1, d2);
      sum = hn::Add(sum, hn::Mul(y, y));
    }
    hn::StoreU(sum, d, energy + band);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {
HWY_EXPORT(Energies);
}
namespace metrics {

void gammatone_energies(std::span<const double> frame, const double* coefficients, std::size_t padded,
                        double* energy) {
  HWY_DYNAMIC_DISPATCH(Energies)(frame.data(), frame.size(), coefficients, padded, energy);
}

}  // namespace metrics
}  // namespace tessera
#endif
