// core/gain.h on the tape: gain and shape of a row apart, and together again, with gradients.
#pragma once

#include "core/autograd/tape.h"

namespace tessera::ops {

/// x [..., C] -> [..., C + 1]: the shape of each row, then its log gain (tessera::split_gain).
Tensor split_gain(Tape& tape, const Tensor& x);
/// x [..., C + 1] -> [..., C]: back (tessera::join_gain). No gradient to a log gain beyond the limit.
Tensor join_gain(Tape& tape, const Tensor& x);

}  // namespace tessera::ops
