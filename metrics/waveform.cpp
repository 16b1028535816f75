#include "metrics/waveform.h"

#include <algorithm>
#include <cstddef>

#include "metrics/signal.h"

namespace tessera::metrics {
namespace {

// |factor s|^2 / |factor s - y|^2 in dB.
double ratio_db(std::span<const float> s, std::span<const float> y, double factor) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double target = factor * s[i], error = target - y[i];
    signal += target * target;
    noise += error * error;
  }
  if (signal == 0) return -kMostDb;
  return noise == 0 ? kMostDb : std::clamp(decibels(signal / noise), -kMostDb, kMostDb);
}

Result<void> check(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz) {
  if (auto good = check_pair(reference, degraded, sample_rate_hz, true); !good) return good;
  for (const float sample : reference) {
    if (sample != 0) return {};
  }
  return Error{ErrorCode::format, "expected a reference that is not silent"};
}

}  // namespace

Result<double> snr(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz) {
  if (auto good = check(reference, degraded, sample_rate_hz); !good) return good.error();
  return ratio_db(reference, degraded, 1);
}

Result<double> si_sdr(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz) {
  if (auto good = check(reference, degraded, sample_rate_hz); !good) return good.error();
  double product = 0, power = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    product += static_cast<double>(reference[i]) * degraded[i];
    power += static_cast<double>(reference[i]) * reference[i];
  }
  return ratio_db(reference, degraded, product / power);
}

}  // namespace tessera::metrics
