// Distances of magnitude spectra, blind to phase: the log-spectral distance (Gray and Markel 1976, in the
// form that work on bandwidth extension reports) and the distance of log mel spectra at several scales (as
// codecs are trained and reported: Kumar et al. 2023). Both ask for aligned sounds of one length.
#pragma once

#include <span>

#include "core/result.h"

namespace tessera::metrics {

/// Mean over frames of the root mean square over bins of log10((|S|^2 + 1e-10) / (|Y|^2 + 1e-10)). Periodic
/// Hann windows of 2048 samples every 512, at any rate; zeros fill the last frame. 0 for equal sounds, lower
/// is better; halved level costs 0.6. Errors: those of check_pair with equal lengths.
Result<double> log_spectral_distance(std::span<const float> reference, std::span<const float> degraded,
                                     int sample_rate_hz);

/// Mean over the windows of 64, 128 ... 2048 samples of the mean absolute difference of log10(max(mel,
/// 1e-5)): magnitudes of Hann windows a quarter apart, gathered by 5 triangles of unit area (Slaney's scale,
/// 0 Hz to half the rate) for every 32 samples of the window; frames centred, ends reflected. 0 for equal
/// sounds, lower is better. Errors: those of check_pair with equal lengths; format below 1025 samples.
Result<double> mel_distance(std::span<const float> reference, std::span<const float> degraded,
                            int sample_rate_hz);

}  // namespace tessera::metrics
