#include "metrics/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "core/exact_math.h"
#include "metrics/signal.h"

namespace tessera::metrics {
namespace {

constexpr double kPi = 3.141592653589793;

// The modified Bessel function of the first kind and order 0, by its power series.
double bessel_i0(double x) {
  const double quarter_square = x * x / 4;
  double sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-18; ++k) {
    term *= quarter_square / (static_cast<double>(k) * k);
    sum += term;
  }
  return sum;
}

// 2 L + 1 taps for the ratio up / down at the rate up * from_hz; each of the `up` phases sums to about 1.
std::vector<double> taps(std::int64_t up, std::int64_t down) {
  constexpr double kRejectionDb = 60, kBeta = 0.1102 * (kRejectionDb - 8.7);
  const double cutoff = 0.5 / static_cast<double>(std::max(up, down));
  const double roll_off = cutoff / 10;
  const auto half = static_cast<std::int64_t>(std::ceil((kRejectionDb - 8) / (28.714 * roll_off)));
  std::vector<double> h;
  double sum = 0;
  for (std::int64_t i = -half; i <= half; ++i) {
    const double position = static_cast<double>(i) / static_cast<double>(half);
    const double angle = 2 * kPi * cutoff * static_cast<double>(i);
    const double sinc = i == 0 ? 1.0 : exact_sin(angle) / angle;
    h.push_back(sinc * bessel_i0(kBeta * std::sqrt(std::max(1 - position * position, 0.0))));
    sum += h.back();
  }
  for (double& tap : h) tap *= static_cast<double>(up) / sum;
  return h;
}

}  // namespace

Result<std::vector<double>> resample(std::span<const double> x, int from_hz, int to_hz) {
  constexpr std::int64_t kMost = 48000;
  const std::int64_t divisor = std::max(std::gcd(from_hz, to_hz), 1);
  const std::int64_t up = to_hz / divisor, down = from_hz / divisor;
  if (std::min(from_hz, to_hz) < kLowestRateHz || std::max(from_hz, to_hz) > kHighestRateHz ||
      std::max(up, down) > kMost) {
    return Error{ErrorCode::unsupported,
                 "cannot resample from " + std::to_string(from_hz) + " to " + std::to_string(to_hz) + " Hz"};
  }
  std::vector<double> y(x.begin(), x.end());
  if (up == down) return y;
  const std::vector<double> h = taps(up, down);
  const auto half = static_cast<std::int64_t>(h.size() / 2), length = static_cast<std::int64_t>(x.size());
  // Output m at m * down, input j at j * up on the common grid. The taps that meet the inputs of one output
  // lie `up` apart: each phase is made contiguous.
  const std::int64_t most = 2 * half / up + 1;  // of one phase
  std::vector<double> phases(static_cast<std::size_t>(up * most));
  for (std::int64_t phase = 0; phase < up; ++phase) {
    for (std::int64_t i = 0; phase + i * up <= 2 * half; ++i) {
      phases[static_cast<std::size_t>(phase * most + i)] = h[static_cast<std::size_t>(phase + i * up)];
    }
  }
  y.resize(static_cast<std::size_t>((length * up + down - 1) / down));
  for (std::size_t m = 0; m < y.size(); ++m) {
    const std::int64_t at = static_cast<std::int64_t>(m) * down + half;  // the tap that meets input 0
    const std::int64_t newest = at / up;
    const double* phase = phases.data() + at % up * most;
    const std::int64_t first = std::max<std::int64_t>(newest - length + 1, 0),
                       end = std::min(newest + 1, most);
    double sum = 0;
    for (std::int64_t i = first; i < end; ++i) sum += phase[i] * x[static_cast<std::size_t>(newest - i)];
    y[m] = sum;
  }
  return y;
}

}  // namespace tessera::metrics
