// Spectra of speech span a million to one; a discriminator that sees them as they are sees little but the
// strongest partials. The fourth root of the magnitude, phase kept, brings what lies between them into view
// (power-law compression as in speech enhancement: Braun and Tashev 2021, who use 0.3).
#pragma once

#include "core/autograd/tape.h"

namespace tessera::train {

/// Added to |x|^2: magnitudes below it shrink to 0, with finite gradients.
inline constexpr float kCompressionFloor = 1e-7f;

/// x [..., 2], real and imaginary parts -> x (|x|^2 + kCompressionFloor)^(-3/8), of the same shape. Throws
/// UsageError for another last extent.
Tensor compress_magnitude(Tape& tape, const Tensor& x);

}  // namespace tessera::train
