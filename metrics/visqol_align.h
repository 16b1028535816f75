// How ViSQOL aligns: the lag at which the upper envelopes of two sounds correlate best, over all lags.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::metrics {

/// The samples by which the degraded sound must be delayed to fit the reference (negative: advanced); 0 where
/// that would be more than half of the reference. Sounds of any two lengths, not empty.
std::int64_t envelope_lag(std::span<const double> reference, std::span<const double> degraded);

/// Zeros before the sound, or samples cut from its start.
std::vector<double> delayed(std::span<const double> sound, std::int64_t lag);

}  // namespace tessera::metrics
