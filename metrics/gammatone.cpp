#include "metrics/gammatone.h"

#include <algorithm>
#include <cmath>

#include "core/exact_math.h"
#include "metrics/fft.h"
#include "metrics/gammatone_kernels.h"
#include "metrics/signal.h"

namespace tessera::metrics {
namespace {

constexpr double kPi = 3.141592653589793;
constexpr double kLowestHz = 50;
constexpr double kEarQ = 9.26449, kMinimumBandwidthHz = 24.7;  // ERB(f) = f / kEarQ + kMinimumBandwidthHz
constexpr double kWindowSeconds = 0.08;

Complex turn(double radians) {
  return {exact_cos(radians), exact_sin(radians)};
}

// The four zeros of Slaney's cascade are real: cos(w) -+ sqrt(3 +- 2^1.5) sin(w) times the pole's radius.
struct Filter {
  double zeros[4], pole1, pole2, gain;
};

Filter design(double center_hz, int sample_rate_hz) {
  const double bandwidth = 1.019 * 2 * kPi * (center_hz / kEarQ + kMinimumBandwidthHz);
  const double w = 2 * kPi * center_hz / sample_rate_hz;
  const double radius = exact_exp(-bandwidth / sample_rate_hz);
  const double wide = std::sqrt(3 + 2 * std::sqrt(2.0)), narrow = std::sqrt(3 - 2 * std::sqrt(2.0));
  const double cosine = exact_cos(w), sine = exact_sin(w);
  Filter filter = {};
  const double slopes[4] = {wide, -wide, narrow, -narrow};
  for (int i = 0; i < 4; ++i) filter.zeros[i] = -(cosine + slopes[i] * sine) * radius;
  filter.pole1 = -2 * cosine * radius;
  filter.pole2 = radius * radius;
  // One at the centre frequency.
  const Complex z1 = turn(-w), z2 = turn(-2 * w);
  double response = 1;
  for (const double zero : filter.zeros) {
    response *= std::abs((1.0 + zero * z1) / (1.0 + filter.pole1 * z1 + filter.pole2 * z2));
  }
  filter.gain = 1 / response;
  return filter;
}

}  // namespace

GammatoneFilterbank::GammatoneFilterbank(int sample_rate_hz, int bands, double highest_hz)
    : bands_(static_cast<std::size_t>(bands)) {
  const double highest = std::min(highest_hz, sample_rate_hz / 2.0);
  const auto samples = static_cast<std::size_t>(std::lround(sample_rate_hz * kWindowSeconds));
  window_.resize(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    window_[i] = 0.5 - 0.5 * exact_cos(2 * kPi * static_cast<double>(i) / static_cast<double>(samples - 1));
  }
  const std::size_t padded = (bands_ + kBandLanes - 1) / kBandLanes * kBandLanes;
  coefficients_.assign(6 * padded, 0.0);
  gain_.resize(bands_);
  // Centres from the highest down: the step that leads from `highest` to kLowestHz in `bands` steps.
  const double offset = kEarQ * kMinimumBandwidthHz;
  const double step = exact_log((kLowestHz + offset) / (highest + offset)) / bands;
  for (std::size_t band = 0; band < bands_; ++band) {
    const double steps = static_cast<double>(bands_ - band);
    const Filter filter = design(exact_exp(steps * step) * (highest + offset) - offset, sample_rate_hz);
    for (std::size_t i = 0; i < 4; ++i) coefficients_[i * padded + band] = filter.zeros[i];
    coefficients_[4 * padded + band] = filter.pole1;
    coefficients_[5 * padded + band] = filter.pole2;
    gain_[band] = filter.gain;
  }
}

std::size_t GammatoneFilterbank::frames(std::size_t samples) const {
  return samples <= window() ? 0 : 1 + (samples - window()) / hop();
}

Spectrogram GammatoneFilterbank::operator()(std::span<const double> sound) const {
  Spectrogram result;
  result.frames = frames(sound.size());
  result.bands = bands_;
  result.values.resize(result.frames * bands_);
  const std::size_t padded = coefficients_.size() / 6;
  std::vector<double> frame(window()), energy(padded);
  for (std::size_t t = 0; t < result.frames; ++t) {
    for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = window_[i] * sound[t * hop() + i];
    gammatone_energies(frame, coefficients_.data(), padded, energy.data());
    for (std::size_t band = 0; band < bands_; ++band) {
      result.values[t * bands_ + band] =
          std::sqrt(energy[band] / static_cast<double>(frame.size())) * gain_[band];
    }
  }
  return result;
}

void prepare_for_comparison(Spectrogram& reference, Spectrogram& degraded) {
  constexpr double kFloor = -45, kRange = 45, kTiny = 0x1p-52;
  for (Spectrogram* spectrogram : {&reference, &degraded}) {
    for (double& value : spectrogram->values) {
      value = std::max(decibels(value == 0 ? kTiny : value), kFloor);
    }
  }
  const std::size_t bands = reference.bands;
  for (std::size_t i = 0; i < std::min(reference.values.size(), degraded.values.size()); i += bands) {
    double peak = kFloor;
    for (std::size_t band = 0; band < bands; ++band) {
      peak = std::max({peak, reference.values[i + band], degraded.values[i + band]});
    }
    for (std::size_t band = 0; band < bands; ++band) {
      reference.values[i + band] = std::max(reference.values[i + band], peak - kRange);
      degraded.values[i + band] = std::max(degraded.values[i + band], peak - kRange);
    }
  }
  double lowest = reference.values.front();
  for (const Spectrogram* spectrogram : {&reference, &degraded}) {
    for (const double value : spectrogram->values) lowest = std::min(lowest, value);
  }
  for (Spectrogram* spectrogram : {&reference, &degraded}) {
    for (double& value : spectrogram->values) value -= lowest;
  }
}

}  // namespace tessera::metrics
