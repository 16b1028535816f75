// Short-time objective intelligibility: how many words of the degraded speech a listener would understand, by
// the correlation of envelopes in third-octave bands over 384 ms. STOI (Taal et al. 2011) and its extension
// to fluctuating noise (Jensen and Taal 2016). At 10 kHz inside.
#pragma once

#include <span>

#include "core/result.h"

namespace tessera::metrics {

/// About 0 to 1, higher is better; 1 for equal sounds, 0 for a silent degraded one. Frames 40 dB below the
/// reference's loudest are left out. Errors: those of check_pair with equal lengths and of resample(); format
/// for fewer than 30 frames of 25.6 ms every 12.8 ms that are left.
Result<double> stoi(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz);
/// The same with spectra normalized over time and over bands; -1 to 1.
Result<double> extended_stoi(std::span<const float> reference, std::span<const float> degraded,
                             int sample_rate_hz);

}  // namespace tessera::metrics
