#include "apps/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/random.h"

namespace tessera::bench {
namespace {

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  if (sorted.empty() || !(q >= 0 && q <= 1)) {
    fail("quantile", "values and 0 <= q <= 1",
         std::to_string(sorted.size()) + " values, q = " + std::to_string(q));
  }
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval mean_interval(std::span<const double> values, const BootstrapOptions& options) {
  if (options.resamples < 1 || !(options.confidence > 0 && options.confidence < 1)) {
    fail("mean_interval", "resamples >= 1 and 0 < confidence < 1",
         std::to_string(options.resamples) + " and " + std::to_string(options.confidence));
  }
  for (const double value : values) {
    if (!std::isfinite(value)) fail("mean_interval", "finite values", std::to_string(value));
  }
  Interval interval;
  interval.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) {
    interval.mean = interval.low = interval.high = std::numeric_limits<double>::quiet_NaN();
    return interval;
  }
  interval.mean = interval.low = interval.high = mean_of(values);
  if (values.size() == 1) return interval;
  std::vector<double> means(static_cast<std::size_t>(options.resamples));
  Random random(options.seed);
  for (double& mean : means) {
    double sum = 0;
    for (std::int64_t i = 0; i < interval.count; ++i) {
      sum += values[static_cast<std::size_t>(random.below(interval.count))];
    }
    mean = sum / static_cast<double>(interval.count);
  }
  std::sort(means.begin(), means.end());
  interval.low = quantile(means, (1 - options.confidence) / 2);
  interval.high = quantile(means, (1 + options.confidence) / 2);
  return interval;
}

double sign_test(std::int64_t k, std::int64_t n) {
  if (k < 0 || k > n) fail("sign_test", "0 <= k <= n", std::to_string(k) + " of " + std::to_string(n));
  const std::int64_t fewer = std::min(k, n - k);
  // Both tails of the binomial distribution, its terms by their logarithms: 2^-n alone would underflow.
  double log_term = -static_cast<double>(n) * exact_log(2), tail = exact_exp(log_term);
  for (std::int64_t i = 1; i <= fewer; ++i) {
    log_term += exact_log(static_cast<double>(n - i + 1) / static_cast<double>(i));
    tail += exact_exp(log_term);
  }
  return std::min(1.0, 2 * tail);
}

PairedComparison compare_paired(std::span<const double> a, std::span<const double> b,
                                const BootstrapOptions& options) {
  if (a.size() != b.size()) {
    fail("compare_paired", "as many values of both",
         std::to_string(a.size()) + " and " + std::to_string(b.size()));
  }
  PairedComparison result;
  std::vector<double> differences(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences[i] = b[i] - a[i];
    ++(b[i] > a[i] ? result.higher : b[i] < a[i] ? result.lower : result.equal);
  }
  result.difference = mean_interval(differences, options);
  if (result.higher + result.lower > 0) result.p = sign_test(result.higher, result.higher + result.lower);
  return result;
}

}  // namespace tessera::bench
