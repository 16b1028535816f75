// How close two waveforms are, sample by sample: signal-to-noise ratio, and its scale-invariant form SI-SDR
// (Le Roux et al. 2019). Means are not removed. Both ask for aligned sounds of one length.
#pragma once

#include <span>

#include "core/result.h"

namespace tessera::metrics {

/// Both are limited to +-kMostDb: equal sounds (of any level, for SI-SDR) score that, a silent degraded sound
/// scores 0 dB of SNR and -kMostDb of SI-SDR.
constexpr double kMostDb = 100;

/// 10 log10(|s|^2 / |s - y|^2) of reference s and degraded y, in dB. Errors: those of check_pair with equal
/// lengths; format for a silent reference.
Result<double> snr(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz);
/// 10 log10(|a s|^2 / |a s - y|^2) with a = <y, s> / |s|^2: blind to any factor, -1 (inverted polarity)
/// included. The same errors.
Result<double> si_sdr(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz);

}  // namespace tessera::metrics
