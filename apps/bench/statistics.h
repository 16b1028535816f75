// What can be said of a mean over recordings: intervals by the bootstrap (Efron 1979, percentile method), and
// two codecs compared on the same recordings, with the sign test. Recordings are what is drawn anew: a result
// holds for speech like this speech, no further. Same numbers on every machine, for every number of threads.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::bench {

struct BootstrapOptions {
  int resamples = 2000;
  double confidence = 0.95;
  std::uint64_t seed = 1;
};

/// A mean, and where it lies with the confidence asked for. One value: low = mean = high. None: all NaN.
struct Interval {
  double mean = 0, low = 0, high = 0;
  std::int64_t count = 0;  ///< of recordings
};

/// Quantile 0 <= q <= 1 of values in increasing order, linear between neighbours. Throws UsageError for no
/// values.
double quantile(std::span<const double> sorted, double q);

/// The plain mean over recordings. Equal counts and options draw the same recordings, so that intervals of
/// series over the same recordings belong together. Throws UsageError for a value that is not finite and for
/// options that cannot work.
Interval mean_interval(std::span<const double> values, const BootstrapOptions& options = {});

/// b against a on the same recordings.
struct PairedComparison {
  Interval difference = {};  ///< b - a
  std::int64_t higher = 0;   ///< recordings where b is above a
  std::int64_t lower = 0;
  std::int64_t equal = 0;
  /// Two-sided sign test: how likely a split at least this uneven is if neither is better. 1 without unequal
  /// pairs.
  double p = 1;
};

/// a[i] and b[i] are of one recording. Throws UsageError for different counts, and as mean_interval does.
PairedComparison compare_paired(std::span<const double> a, std::span<const double> b,
                                const BootstrapOptions& options = {});

/// Probability of a split into k and n - k, or a more uneven one, by fair tosses. 0 <= k <= n.
double sign_test(std::int64_t k, std::int64_t n);

}  // namespace tessera::bench
