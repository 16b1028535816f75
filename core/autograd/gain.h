// core/gain.h on the tape: gain and shape of the bands of a row apart, and together again, with gradients.
#pragma once

#include <span>

#include "core/autograd/tape.h"

namespace tessera::ops {

/// x [..., n] -> [..., n + m]: the shapes of m bands, then their log gains (tessera::split_gain). `bands` are
/// widths.
Tensor split_gain(Tape& tape, const Tensor& x, std::span<const int> bands);
/// x [..., n + m] -> [..., n]: back (tessera::join_gain). No gradient to a log gain beyond the limit.
Tensor join_gain(Tape& tape, const Tensor& x, std::span<const int> bands);

}  // namespace tessera::ops
