// The envelope is the magnitude of the analytic signal around the mean. Both envelopes come out of one pair
// of transforms, since the Hilbert transform of a + i b is that of a plus i times that of b.
#include "metrics/visqol_align.h"

#include <algorithm>
#include <cmath>

#include "metrics/fft.h"

namespace tessera::metrics {
namespace {

double mean(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

// Envelopes of both sounds as real and imaginary parts; zeros behind the shorter one.
std::vector<Complex> envelopes(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean(a), mean_b = mean(b);
  const std::size_t longest = std::max(a.size(), b.size());
  const Fft fft(std::max<std::size_t>(power_of_two(longest), 2));
  std::vector<Complex> z(fft.size()), scratch(fft.size());
  for (std::size_t i = 0; i < longest; ++i) {
    z[i] = {i < a.size() ? a[i] - mean_a : 0.0, i < b.size() ? b[i] - mean_b : 0.0};
  }
  fft.forward(z, scratch);
  z[0] = z[fft.size() / 2] = 0;
  for (std::size_t k = 1; k < fft.size() / 2; ++k) {
    z[k] = {z[k].imag(), -z[k].real()};  // -i for positive frequencies
    Complex& negative = z[fft.size() - k];
    negative = {-negative.imag(), negative.real()};
  }
  fft.inverse(z, scratch);
  const double scale = 1 / static_cast<double>(fft.size());
  const auto envelope = [&](std::span<const double> x, double mean_x, std::size_t i, double hilbert) {
    if (i >= x.size()) return 0.0;
    const double real = x[i] - mean_x, imaginary = hilbert * scale;
    return std::sqrt(real * real + imaginary * imaginary) + mean_x;
  };
  z.resize(longest);
  for (std::size_t i = 0; i < longest; ++i) {
    z[i] = {envelope(a, mean_a, i, z[i].real()), envelope(b, mean_b, i, z[i].imag())};
  }
  return z;
}

}  // namespace

std::int64_t envelope_lag(std::span<const double> reference, std::span<const double> degraded) {
  std::vector<Complex> z = envelopes(reference, degraded);
  const auto longest = static_cast<std::int64_t>(z.size());
  const Fft fft(std::max<std::size_t>(power_of_two(2 * z.size() - 1), 2));
  z.resize(fft.size());
  std::vector<Complex> scratch(fft.size());
  fft.forward(z, scratch);
  for (std::size_t k = 0; k <= fft.size() / 2; ++k) {
    const auto [a, b] = real_bins(z, k);
    z[k] = {a.real() * b.real() + a.imag() * b.imag(),
            a.imag() * b.real() - a.real() * b.imag()};  // a conj(b)
    if (k > 0) z[fft.size() - k] = std::conj(z[k]);
  }
  fft.inverse(z, scratch);
  std::int64_t best = 0;
  double highest = -HUGE_VAL;
  for (std::int64_t lag = 1 - longest; lag < longest; ++lag) {
    const auto at = static_cast<std::size_t>(lag < 0 ? lag + static_cast<std::int64_t>(fft.size()) : lag);
    if (z[at].real() > highest) {
      highest = z[at].real();
      best = lag;
    }
  }
  return 2 * std::abs(best) > static_cast<std::int64_t>(reference.size()) ? 0 : best;
}

std::vector<double> delayed(std::span<const double> sound, std::int64_t lag) {
  std::vector<double> result(static_cast<std::size_t>(std::max<std::int64_t>(lag, 0)));
  const auto cut = static_cast<std::size_t>(std::max<std::int64_t>(-lag, 0));
  if (cut < sound.size())
    result.insert(result.end(), sound.begin() + static_cast<std::ptrdiff_t>(cut), sound.end());
  return result;
}

}  // namespace tessera::metrics
