// Correlation by blocks: the products of spectra are summed over blocks of the reference, each against the
// part of the degraded sound that its lags reach, and transformed back once.
#include "metrics/alignment.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "metrics/fft.h"

namespace tessera::metrics {
namespace {

double energy(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace

Delay find_delay(std::span<const float> reference, std::span<const float> degraded, std::int64_t max_delay) {
  constexpr std::int64_t kMost = 1 << 24;
  if (max_delay < 0 || max_delay > kMost) {
    fail("find_delay", "0 to 2^24 samples", std::to_string(max_delay));
  }
  const auto length = static_cast<std::int64_t>(reference.size());
  const auto available = static_cast<std::int64_t>(degraded.size());
  // Lags beyond either sound have no overlap.
  max_delay = std::min(max_delay, std::max(length, available));
  const auto size = static_cast<std::int64_t>(
      power_of_two(static_cast<std::size_t>(std::max<std::int64_t>(4 * max_delay, 1 << 14))));
  const std::int64_t block = size - 2 * max_delay;
  const Fft fft(static_cast<std::size_t>(size));
  std::vector<Complex> z(fft.size()), scratch(fft.size()), products(fft.size());
  for (std::int64_t begin = 0; begin < length; begin += block) {
    const std::int64_t first = begin - max_delay;  // the sample of `degraded` that stands at index 0
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t r = begin + i, d = first + i;
      z[static_cast<std::size_t>(i)] = {
          i < block && r < length ? reference[static_cast<std::size_t>(r)] : 0.0f,
          d >= 0 && d < available ? degraded[static_cast<std::size_t>(d)] : 0.0f};
    }
    fft.forward(z, scratch);
    for (std::size_t k = 0; k <= fft.size() / 2; ++k) {
      const auto [a, b] = real_bins(z, k);
      products[k] += Complex(a.real() * b.real() + a.imag() * b.imag(),
                             a.real() * b.imag() - a.imag() * b.real());  // conj(a) b
    }
  }
  for (std::size_t k = 1; k < fft.size() / 2; ++k) products[fft.size() - k] = std::conj(products[k]);
  fft.inverse(products, scratch);
  const double scale = std::sqrt(energy(reference)) * std::sqrt(energy(degraded));
  Delay best;
  if (scale == 0) return best;
  const auto at = [&](std::int64_t lag) {
    return products[static_cast<std::size_t>(lag + max_delay)].real() / (static_cast<double>(size) * scale);
  };
  constexpr double kRounding = 1e-12;  // less is no difference
  best.correlation = at(0);
  for (std::int64_t lag = 1; lag <= max_delay; ++lag) {
    for (const std::int64_t signed_lag : {-lag, lag}) {
      if (at(signed_lag) > best.correlation + kRounding) best = {signed_lag, at(signed_lag)};
    }
  }
  return best;
}

AlignedPair align(std::span<const float> reference, std::span<const float> degraded, std::int64_t delay) {
  const auto length = static_cast<std::int64_t>(reference.size());
  const auto available = static_cast<std::int64_t>(degraded.size());
  AlignedPair pair;
  if (delay >= available || delay <= -length) return pair;
  const std::int64_t begin = std::max<std::int64_t>(-delay, 0);
  const std::int64_t missing = std::max<std::int64_t>(length - (available - delay), 0);
  const std::int64_t end = length - std::min(missing, std::max<std::int64_t>(delay, 0));
  if (begin >= end) return pair;
  pair.reference.assign(reference.begin() + begin, reference.begin() + end);
  pair.degraded.assign(degraded.begin() + begin + delay, degraded.begin() + std::min(end + delay, available));
  pair.degraded.resize(pair.reference.size());
  return pair;
}

}  // namespace tessera::metrics
