// Fourier transforms of power-of-two length in double precision, for analysis off the hot path: alignment,
// envelopes, spectra of frames. Stockham's self-sorting form in passes of four; plain arithmetic with tables
// from core/exact_math.h, so the bits are the same on every machine.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

namespace tessera::metrics {

using Complex = std::complex<double>;

/// The smallest power of two that is at least `count`.
std::size_t power_of_two(std::size_t count);

/// Transforms of one length. Immutable: for any number of threads.
class Fft {
 public:
  /// Throws UsageError unless `size` is a power of two of at least 2.
  explicit Fft(std::size_t size);

  std::size_t size() const { return size_; }
  /// x[k] = sum over n of x[n] exp(-2 pi i k n / size), in place; `scratch` has `size` elements, too.
  void forward(std::span<Complex> x, std::span<Complex> scratch) const;
  /// The same with +i: not divided by the size.
  void inverse(std::span<Complex> x, std::span<Complex> scratch) const;

 private:
  template <bool kInverse>
  void transform(std::span<Complex> x, std::span<Complex> scratch) const;

  std::size_t size_;
  std::vector<Complex> turns_;  // exp(-2 pi i k / size) for k < 3/4 size
};

/// `z` is the transform of a + i b with real a and b: takes their spectra A and B apart, bin `k`.
struct TwoBins {
  Complex a, b;
};
inline TwoBins real_bins(std::span<const Complex> z, std::size_t k) {
  const Complex u = z[k], v = std::conj(z[k == 0 ? 0 : z.size() - k]);
  const Complex difference = u - v;
  return {(u + v) * 0.5, Complex(difference.imag() * 0.5, difference.real() * -0.5)};
}

}  // namespace tessera::metrics
