// core/pitch_filter.h on the tape.
#pragma once

#include <memory>

#include "core/autograd/tape.h"
#include "core/pitch_filter.h"

namespace tessera::ops {

/// x [B, L, 1], L a multiple of the hop -> [B, L, 1], filter.delay() samples late; each clip begins like a
/// stream. Periods and weights are constants to the gradient.
Tensor pitch_filter(Tape& tape, const Tensor& x, const std::shared_ptr<const PitchFilter>& filter);

}  // namespace tessera::ops
