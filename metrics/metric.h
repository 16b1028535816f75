// What there is to measure: names, units, which way is better, and what each metric can and cannot tell
// (docs/metrics.md says it at length).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::metrics {

/// One number of one comparison.
struct Score {
  std::string name = {};
  double value = 0;
};

enum class Better : std::uint8_t { higher, lower };

struct MetricInfo {
  std::string_view name;
  std::string_view unit;  ///< "MOS", "dB", "" for a plain number
  Better better = Better::higher;
  int rate_hz = 0;             ///< sounds are resampled to it; 0: measured at their own rate
  std::string_view file = {};  ///< below the model folder; empty: needs none
  std::string_view tells;      ///< one sentence
};

/// All of them, in the order in which they are reported.
std::span<const MetricInfo> all_metrics();
/// The one of that name, or null.
const MetricInfo* find_metric(std::string_view name);

}  // namespace tessera::metrics
