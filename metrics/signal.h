// What every metric asks of its input before it computes: samples that exist and are numbers, a rate that can
// be.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"

namespace tessera::metrics {

constexpr int kLowestRateHz = 8000, kHighestRateHz = 192000;

/// Error (format) for an empty sound or one with a NaN or an infinity, said of "reference" or whatever `what`
/// says; (usage) for a rate outside 8 to 192 kHz.
Result<void> check_sound(std::span<const float> sound, int sample_rate_hz, const char* what);
/// Both sounds; with `equal`, an error (mismatch) unless they are of one length.
Result<void> check_pair(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz,
                        bool equal);

/// Exactly the same values.
std::vector<double> widened(std::span<const float> sound);
double energy(std::span<const double> x);
/// 10 log10(x).
double decibels(double x);

}  // namespace tessera::metrics
