// Change of the sample rate by a rational factor: the polyphase filter of Octave's and MATLAB's resample (a
// Kaiser window of 60 dB over a sinc that ends a tenth above the lower Nyquist frequency), which the
// published scores of STOI rest on. For measuring; sound for listeners goes through codec/media/resampler.h.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"

namespace tessera::metrics {

/// ceil(count * to / from) samples; sample 0 stays at time 0. Equal rates give a copy. Error (unsupported)
/// for rates outside 8 to 192 kHz or whose ratio in lowest terms has a number above 48000.
Result<std::vector<double>> resample(std::span<const double> x, int from_hz, int to_hz);

}  // namespace tessera::metrics
