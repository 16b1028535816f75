// Stockham's transform (Cochran et al. 1967), radix 4 with one last pass of radix 2 where the length needs
// it. Products of complex numbers are written out: those of the standard library look for infinities.
#include "metrics/fft.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/error.h"
#include "core/exact_math.h"

namespace tessera::metrics {
namespace {

constexpr double kTwoPi = 6.283185307179586;

inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <bool kInverse>
inline Complex times_turn(Complex a, Complex turn) {
  return times(a, kInverse ? std::conj(turn) : turn);
}

// -i a, or i a for the inverse.
template <bool kInverse>
inline Complex quarter_turn(Complex a) {
  return kInverse ? Complex(-a.imag(), a.real()) : Complex(a.imag(), -a.real());
}

}  // namespace

std::size_t power_of_two(std::size_t count) {
  return std::bit_ceil(std::max<std::size_t>(count, 1));
}

Fft::Fft(std::size_t size) : size_(size) {
  if (size < 2 || !std::has_single_bit(size)) fail("fft", "a power of two", std::to_string(size));
  // Two small tables and their products: a sine for each of a million angles would cost more than the
  // transform.
  const auto angle = [&](std::size_t k) {
    const double radians = kTwoPi * static_cast<double>(k) / static_cast<double>(size);
    return Complex(exact_cos(radians), -exact_sin(radians));
  };
  const std::size_t fine = std::min<std::size_t>(size, 512);
  std::vector<Complex> small(fine);
  for (std::size_t k = 0; k < fine; ++k) small[k] = angle(k);
  turns_.resize(size / 4 * 3 + 1);
  for (std::size_t k = 0; k < turns_.size(); k += fine) {
    const Complex large = angle(k);
    const std::size_t end = std::min(fine, turns_.size() - k);
    for (std::size_t i = 0; i < end; ++i) turns_[k + i] = times(large, small[i]);
  }
}

template <bool kInverse>
void Fft::transform(std::span<Complex> x, std::span<Complex> scratch) const {
  if (x.size() != size_ || scratch.size() != size_) {
    fail("fft", std::to_string(size_) + " elements and as much scratch",
         std::to_string(x.size()) + " and " + std::to_string(scratch.size()));
  }
  Complex* from = x.data();
  Complex* to = scratch.data();
  std::size_t length = size_, stride = 1;  // `stride` transforms of `length` elements are left
  for (; length >= 4; length /= 4, stride *= 4) {
    const std::size_t quarter = length / 4;
    for (std::size_t p = 0; p < quarter; ++p) {
      const Complex w1 = turns_[p * stride], w2 = turns_[2 * p * stride], w3 = turns_[3 * p * stride];
      const Complex* in = from + stride * p;
      Complex* out = to + stride * 4 * p;
      for (std::size_t q = 0; q < stride; ++q, ++in, ++out) {
        const Complex a = in[0], b = in[stride * quarter], c = in[2 * stride * quarter],
                      d = in[3 * stride * quarter];
        const Complex even = a + c, odd = a - c, sum = b + d, turned = quarter_turn<kInverse>(b - d);
        out[0] = even + sum;
        out[stride] = times_turn<kInverse>(odd + turned, w1);
        out[2 * stride] = times_turn<kInverse>(even - sum, w2);
        out[3 * stride] = times_turn<kInverse>(odd - turned, w3);
      }
    }
    std::swap(from, to);
  }
  if (length == 2) {
    for (std::size_t q = 0; q < stride; ++q) {
      const Complex a = from[q], b = from[q + stride];
      to[q] = a + b;
      to[q + stride] = a - b;
    }
    std::swap(from, to);
  }
  if (from != x.data()) std::copy_n(from, size_, x.data());
}

void Fft::forward(std::span<Complex> x, std::span<Complex> scratch) const {
  transform<false>(x, scratch);
}
void Fft::inverse(std::span<Complex> x, std::span<Complex> scratch) const {
  transform<true>(x, scratch);
}

}  // namespace tessera::metrics
