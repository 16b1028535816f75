#include "metrics/signal.h"

#include <cmath>
#include <string>

#include "core/exact_math.h"

namespace tessera::metrics {

Result<void> check_sound(std::span<const float> sound, int sample_rate_hz, const char* what) {
  if (sample_rate_hz < kLowestRateHz || sample_rate_hz > kHighestRateHz) {
    return Error{ErrorCode::usage, "expected a sample rate of " + std::to_string(kLowestRateHz) + " to " +
                                       std::to_string(kHighestRateHz) + " Hz, got " +
                                       std::to_string(sample_rate_hz)};
  }
  if (sound.empty()) return Error{ErrorCode::format, std::string("the ") + what + " has no samples"};
  for (std::size_t i = 0; i < sound.size(); ++i) {
    if (!std::isfinite(sound[i])) {
      return Error{ErrorCode::format, std::string("expected finite samples, got ") +
                                          (std::isnan(sound[i]) ? "NaN" : "an infinity") + " at sample " +
                                          std::to_string(i) + " of the " + what};
    }
  }
  return {};
}

Result<void> check_pair(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz,
                        bool equal) {
  if (auto good = check_sound(reference, sample_rate_hz, "reference"); !good) return good;
  if (auto good = check_sound(degraded, sample_rate_hz, "degraded sound"); !good) return good;
  if (equal && reference.size() != degraded.size()) {
    return Error{ErrorCode::mismatch, "expected sounds of one length (align them first), got " +
                                          std::to_string(reference.size()) + " samples of reference and " +
                                          std::to_string(degraded.size()) + " of degraded sound"};
  }
  return {};
}

std::vector<double> widened(std::span<const float> sound) {
  return {sound.begin(), sound.end()};
}

double energy(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

double decibels(double x) {
  constexpr double kLn10 = 2.302585092994046;
  return 10 * exact_log(x) / kLn10;
}

}  // namespace tessera::metrics
