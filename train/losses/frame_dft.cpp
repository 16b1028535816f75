// Element e of a group of complex numbers is a vector of real parts and a vector of imaginary parts, a lane
// for each frame. The inverse transform is the forward one with both parts swapped.
#include "train/losses/frame_dft.h"

#include <string>
#include <utility>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/losses/frame_dft.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "core/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {
namespace {

using train::FrameDft;
using train::SpectrumKind;
using D = hn::CappedTag<float, FrameDft::kFrames>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());
constexpr float kTiny = 0x1p-80f;

struct Complex {
  V re, im;
};

HWY_INLINE Complex operator+(Complex a, Complex b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE Complex operator-(Complex a, Complex b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}

/// start + a w, w the pair at `factor`.
HWY_INLINE Complex AddProduct(Complex start, Complex a, const float* factor) {
  const D d;
  const V re = hn::Set(d, factor[0]), im = hn::Set(d, factor[1]);
  return {Fma(d, a.im, hn::Neg(im), Fma(d, a.re, re, start.re)),
          Fma(d, a.im, re, Fma(d, a.re, im, start.im))};
}

HWY_INLINE Complex Product(Complex a, const float* factor) {
  const D d;
  const V re = hn::Set(d, factor[0]), im = hn::Set(d, factor[1]);
  return {Fma(d, a.re, re, hn::Mul(a.im, hn::Neg(im))), Fma(d, a.re, im, hn::Mul(a.im, re))};
}

/// An array of complex vectors. Swapped: imaginary parts first.
template <bool kSwapped>
struct Elements {
  float* base;
  Complex operator[](size_t e) const {
    const D d;
    return {hn::Load(d, base + (2 * e + kSwapped) * kLanes),
            hn::Load(d, base + (2 * e + !kSwapped) * kLanes)};
  }
  void set(size_t e, Complex value) const {
    const D d;
    hn::Store(value.re, d, base + (2 * e + kSwapped) * kLanes);
    hn::Store(value.im, d, base + (2 * e + !kSwapped) * kLanes);
  }
};

template <bool kTwiddles, bool kSwapped>
HWY_INLINE void Radix4(const Elements<kSwapped> x, size_t x_step, const Elements<kSwapped> y, size_t stride,
                       const float* twiddles) {
  for (size_t q = 0; q < stride; ++q) {
    const Complex a = x[q], b = x[q + x_step], c = x[q + 2 * x_step], e = x[q + 3 * x_step];
    const Complex ac = a + c, be = b + e, a_c = a - c, b_e = b - e;
    const Complex turned = {hn::Neg(b_e.im), b_e.re};  // times i
    const Complex y1 = a_c - turned, y2 = ac - be, y3 = a_c + turned;
    y.set(q, ac + be);
    y.set(q + stride, kTwiddles ? Product(y1, twiddles) : y1);
    y.set(q + 2 * stride, kTwiddles ? Product(y2, twiddles + 2) : y2);
    y.set(q + 3 * stride, kTwiddles ? Product(y3, twiddles + 4) : y3);
  }
}

template <bool kSwapped>
HWY_INLINE void Radix2(const Elements<kSwapped> x, size_t x_step, const Elements<kSwapped> y, size_t stride,
                       const float* twiddles) {
  for (size_t q = 0; q < stride; ++q) {
    const Complex a = x[q], b = x[q + x_step];
    y.set(q, a + b);
    y.set(q + stride, Product(a - b, twiddles));
  }
}

template <bool kSwapped>
HWY_INLINE void OddRadix(const Elements<kSwapped> x, size_t x_step, const Elements<kSwapped> y, size_t stride,
                         const float* twiddles, const float* roots, size_t radix) {
  for (size_t k = 0; k < radix; ++k) {
    for (size_t q = 0; q < stride; ++q) {
      Complex sum = x[q];
      for (size_t j = 1, turn = k; j < radix; ++j, turn = (turn + k) % radix) {
        sum = AddProduct(sum, x[q + j * x_step], roots + 2 * turn);
      }
      y.set(q + k * stride, k == 0 ? sum : Product(sum, twiddles + 2 * (k - 1)));
    }
  }
}

/// The FFT of what is in `x`; both arrays are overwritten. Returns the one with the result.
template <bool kSwapped>
float* Transform(const FrameDft::Tables& tables, float* x, float* y) {
  for (const FrameDft::Stage& stage : tables.stages) {
    const auto radix = static_cast<size_t>(stage.radix), count = static_cast<size_t>(stage.count),
               stride = static_cast<size_t>(stage.stride);
    for (size_t p = 0; p < count; ++p) {
      const Elements<kSwapped> in{x + 2 * kLanes * stride * p}, out{y + 2 * kLanes * stride * radix * p};
      const float* twiddles = tables.factors.data() + stage.twiddles + 2 * (radix - 1) * p;
      if (radix == 4 && p == 0) {
        Radix4<false>(in, count * stride, out, stride, twiddles);
      } else if (radix == 4) {
        Radix4<true>(in, count * stride, out, stride, twiddles);
      } else if (radix == 2) {
        Radix2(in, count * stride, out, stride, twiddles);
      } else {
        OddRadix(in, count * stride, out, stride, twiddles, tables.factors.data() + stage.roots, radix);
      }
    }
    std::swap(x, y);
  }
  return x;
}

/// Between the DFT Z of pairs of samples, `half` elements, and that of the samples themselves, half + 1, in
/// place: X[k] = E + h D, X[half - k] = conj(E - h D) with E = (Z[k] + conj Z[half - k]) / 2 and D = Z[k] -
/// conj Z[half - k]. Its transpose has conj(h) and otherwise the same form.
template <bool kTransposed>
void Split(const FrameDft::Tables& tables, float* spectrum, size_t half) {
  const D d;
  const V scale = hn::Set(d, 0.5f);
  const Elements<false> z{spectrum};
  if constexpr (kTransposed) {
    const V first = z[0].re, last = z[half].re;  // imaginary parts of both never had an effect
    z.set(0, {hn::Add(first, last), hn::Sub(first, last)});
  } else {
    const Complex both = z[0];
    z.set(0, {hn::Add(both.re, both.im), hn::Zero(d)});
    z.set(half, {hn::Sub(both.re, both.im), hn::Zero(d)});
  }
  for (size_t k = 1; 2 * k <= half; ++k) {
    const Complex a = z[k], b = z[half - k];
    const Complex sum = {hn::Mul(scale, hn::Add(a.re, b.re)), hn::Mul(scale, hn::Sub(a.im, b.im))};
    const Complex difference = {hn::Sub(a.re, b.re), hn::Add(a.im, b.im)};
    const float h[2] = {tables.halves[2 * k],
                        kTransposed ? -tables.halves[2 * k + 1] : tables.halves[2 * k + 1]};
    const Complex turned = Product(difference, h);
    const Complex low = sum + turned, high = sum - turned;
    z.set(half - k, {high.re, hn::Neg(high.im)});
    z.set(k, low);
  }
}

using D4 = hn::FixedTag<float, 4>;
using V4 = hn::Vec<D4>;

HWY_INLINE void Transpose4(V4 (&v)[4]) {
  const D4 d;
  const V4 ac = hn::InterleaveLower(d, v[0], v[2]), bd = hn::InterleaveLower(d, v[1], v[3]);
  const V4 ac2 = hn::InterleaveUpper(d, v[0], v[2]), bd2 = hn::InterleaveUpper(d, v[1], v[3]);
  v[0] = hn::InterleaveLower(d, ac, bd);
  v[1] = hn::InterleaveUpper(d, ac, bd);
  v[2] = hn::InterleaveLower(d, ac2, bd2);
  v[3] = hn::InterleaveUpper(d, ac2, bd2);
}

/// Element n of row l to lane l of vector n; times the window if there is one.
void LoadRows(const float* const* rows, const float* window, size_t count, float* out) {
  const D4 d;
  for (size_t l = 0; l < kLanes; l += 4) {
    size_t n = 0;
    for (; n + 4 <= count; n += 4) {
      V4 v[4];
      for (size_t i = 0; i < 4; ++i) {
        v[i] = hn::LoadU(d, rows[l + i] + n);
        if (window) v[i] = hn::Mul(v[i], hn::LoadU(d, window + n));
      }
      Transpose4(v);
      for (size_t i = 0; i < 4; ++i) hn::Store(v[i], d, out + (n + i) * kLanes + l);
    }
    for (; n < count; ++n) {
      for (size_t i = l; i < l + 4; ++i) out[n * kLanes + i] = rows[i][n] * (window ? window[n] : 1.0f);
    }
  }
}

/// The way back.
void StoreRows(const float* in, const float* window, size_t count, float* const* rows) {
  const D4 d;
  for (size_t l = 0; l < kLanes; l += 4) {
    size_t n = 0;
    for (; n + 4 <= count; n += 4) {
      V4 v[4];
      for (size_t i = 0; i < 4; ++i) v[i] = hn::Load(d, in + (n + i) * kLanes + l);
      Transpose4(v);
      for (size_t i = 0; i < 4; ++i) {
        if (window) v[i] = hn::Mul(v[i], hn::LoadU(d, window + n));
        hn::StoreU(v[i], d, rows[l + i] + n);
      }
    }
    for (; n < count; ++n) {
      for (size_t i = l; i < l + 4; ++i) rows[i][n] = in[n * kLanes + i] * (window ? window[n] : 1.0f);
    }
  }
}

HWY_INLINE V Power(Complex x) {
  return Fma(D(), x.re, x.re, hn::Mul(x.im, x.im));
}
HWY_INLINE V Magnitude(Complex x) {
  const D d;
  return hn::Sqrt(Fma(d, x.re, x.re, Fma(d, x.im, x.im, hn::Set(d, kTiny))));
}

/// Loads kLanes frames and returns their spectra; `other` becomes the buffer that is free.
float* Spectrum(const FrameDft::Tables& tables, const float* const* frames, const float* window, size_t half,
                float* buffer, float*& other) {
  LoadRows(frames, window, 2 * half, buffer);
  float* spectrum = Transform<false>(tables, buffer, other);
  if (spectrum == other) other = buffer;
  Split<false>(tables, spectrum, half);
  return spectrum;
}

void ForwardKernel(const FrameDft::Tables& tables, const float* window, size_t half,
                   const float* const* frames, SpectrumKind kind, float* const* spectra, float* scratch) {
  const D d;
  for (size_t l = 0; l < FrameDft::kFrames; l += kLanes) {
    float* other = scratch + 2 * (half + 1) * kLanes;
    float* spectrum = Spectrum(tables, frames + l, window, half, scratch, other);
    if (kind == SpectrumKind::complex) {
      StoreRows(spectrum, nullptr, 2 * (half + 1), spectra + l);
      continue;
    }
    const Elements<false> x{spectrum};
    for (size_t k = 0; k <= half; ++k) {
      const Complex bin = x[k];
      hn::Store(kind == SpectrumKind::power ? Power(bin) : Magnitude(bin), d, other + k * kLanes);
    }
    StoreRows(other, nullptr, half + 1, spectra + l);
  }
}

void BackwardKernel(const FrameDft::Tables& tables, const float* window, size_t half,
                    const float* const* frames, SpectrumKind kind, const float* const* gradients,
                    float* const* frame_gradients, float* scratch) {
  const D d;
  for (size_t l = 0; l < FrameDft::kFrames; l += kLanes) {
    float* other = scratch + 2 * (half + 1) * kLanes;
    float* spectrum = scratch;
    if (kind == SpectrumKind::complex) {
      LoadRows(gradients + l, nullptr, 2 * (half + 1), spectrum);
    } else {
      spectrum = Spectrum(tables, frames + l, window, half, scratch, other);
      LoadRows(gradients + l, nullptr, half + 1, other);
      const Elements<false> x{spectrum};
      for (size_t k = 0; k <= half; ++k) {
        const Complex bin = x[k];
        const V g = hn::Load(d, other + k * kLanes);
        const V factor = kind == SpectrumKind::power ? hn::Add(g, g) : hn::Div(g, Magnitude(bin));
        x.set(k, {hn::Mul(bin.re, factor), hn::Mul(bin.im, factor)});
      }
    }
    Split<true>(tables, spectrum, half);
    StoreRows(Transform<true>(tables, spectrum, other), window, 2 * half, frame_gradients + l);
  }
}

}  // namespace
}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(ForwardKernel);
HWY_EXPORT(BackwardKernel);

// exp(-2 pi i part / turn) as a pair; the angle is reduced in integers, so no error grows with it.
void push_root(std::vector<float>& table, std::int64_t part, std::int64_t turn) {
  const double angle =
      2 * 3.14159265358979323846 * static_cast<double>(part % turn) / static_cast<double>(turn);
  table.push_back(static_cast<float>(exact_cos(angle)));
  table.push_back(static_cast<float>(-exact_sin(angle)));
}

// The largest factor wanted next: 4, then 2, then odd primes in rising order.
int next_radix(int length) {
  if (length % 4 == 0) return 4;
  for (int radix = 2; radix * radix <= length; ++radix) {
    if (length % radix == 0) return radix;
  }
  return length;
}

}  // namespace

namespace train {

FrameDft::FrameDft(std::span<const float> window) : window_(window.begin(), window.end()) {
  if (window.size() < 2 || window.size() % 2 || window.size() > (1u << 20)) {
    fail("frame_dft", "a window of even length from 2 to 2^20", std::to_string(window.size()));
  }
  int stride = 1;
  for (int length = bins() - 1; length > 1;) {
    Stage stage;
    stage.radix = next_radix(length);
    stage.count = length / stage.radix;
    stage.stride = stride;
    stage.twiddles = tables_.factors.size();
    for (int p = 0; p < stage.count; ++p) {
      for (int k = 1; k < stage.radix; ++k) push_root(tables_.factors, std::int64_t{p} * k, length);
    }
    stage.roots = tables_.factors.size();
    if (stage.radix % 2) {
      for (int k = 0; k < stage.radix; ++k) push_root(tables_.factors, k, stage.radix);
    }
    tables_.stages.push_back(stage);
    length = stage.count;
    stride *= stage.radix;
  }
  for (int k = 0; k <= length() / 4; ++k) {
    std::vector<float> root;
    push_root(root, k, length());
    tables_.halves.push_back(0.5f * root[1]);
    tables_.halves.push_back(-0.5f * root[0]);
  }
}

std::size_t FrameDft::scratch_floats() const {
  return 2 * 2 * static_cast<std::size_t>(bins()) * kFrames;
}

void FrameDft::forward(const float* const* frames, SpectrumKind kind, float* const* spectra,
                       float* scratch) const {
  HWY_DYNAMIC_DISPATCH(ForwardKernel)
  (tables_, window_.data(), window_.size() / 2, frames, kind, spectra, scratch);
}

void FrameDft::backward(const float* const* frames, SpectrumKind kind, const float* const* spectrum_gradients,
                        float* const* frame_gradients, float* scratch) const {
  HWY_DYNAMIC_DISPATCH(BackwardKernel)
  (tables_, window_.data(), window_.size() / 2, frames, kind, spectrum_gradients, frame_gradients, scratch);
}

}  // namespace train
}  // namespace tessera
#endif  // HWY_ONCE
