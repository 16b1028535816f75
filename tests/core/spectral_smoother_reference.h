// The spectral smoother as docs/tessera-family.md writes it, in double precision, one sample at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "core/spectral_smoother.h"

namespace tessera::test {

/// x, silence before and after it -> as many samples, options' delay late.
class SpectralSmootherReference {
 public:
  SpectralSmootherReference(const SpectralSmootherOptions& options, const std::vector<double>& x)
      : o_(options), x_(x) {}

  std::vector<double> output() const {
    std::vector<double> y;
    const long hop = o_.hop, delay = (o_.after + 1) * hop;
    for (long late = 0; late < static_cast<long>(x_.size()); ++late) {
      const long n = late - delay, window = n >= 0 ? n / hop : -((hop - 1 - n) / hop);
      double sum = at(n);
      for (const long i : {window - 1, window}) sum += change(i, n - i * hop);
      y.push_back(sum);
    }
    return y;
  }

 private:
  using Complex = std::complex<double>;

  double at(long n) const {
    return n < 0 || n >= static_cast<long>(x_.size()) ? 0 : x_[static_cast<std::size_t>(n)];
  }
  double hann(long n) const {
    return std::pow(std::sin(std::numbers::pi * static_cast<double>(n) / (2 * o_.hop)), 2);
  }
  double turn(int k, long n) const { return std::numbers::pi * k * static_cast<double>(n) / o_.hop; }
  Complex spectrum(long window, int k) const {
    Complex sum = 0;
    for (long n = 0; n < 2 * o_.hop; ++n) {
      sum += hann(n) * at(window * o_.hop + n) * std::polar(1.0, -turn(k, n));
    }
    return sum;
  }
  double log_of(long window, int k) const { return std::log(std::abs(spectrum(window, k)) + 1e-4); }
  // Sample n of what is added to a window.
  double change(long window, long n) const {
    double sum = 0;
    for (int k = 0; k < o_.bins; ++k) {
      double mean = 0, weights = 0;
      for (int d = -o_.before; d <= o_.after; ++d) {
        const double u =
            std::pow(std::cos(std::numbers::pi * d / (2 * (std::max(o_.before, o_.after) + 1))), 2);
        mean += u * log_of(window + d, k);
        weights += u;
      }
      const double gain = std::exp(mean / weights - log_of(window, k));
      sum += (k ? 2 : 1) * std::real((gain - 1) * spectrum(window, k) * std::polar(1.0, turn(k, n)));
    }
    const double own = hann(n), other = hann((n + o_.hop) % (2 * o_.hop));
    return sum / (2 * o_.hop) * own / (own * own + other * other);
  }

  SpectralSmootherOptions o_;
  std::vector<double> x_;
};

}  // namespace tessera::test
