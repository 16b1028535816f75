// core/spectral_smoother.h on the tape.
#pragma once

#include <memory>

#include "core/autograd/tape.h"
#include "core/spectral_smoother.h"

namespace tessera::ops {

/// x [B, L, 1], L a multiple of the hop -> [B, L, 1], smoother.delay() samples late; each clip begins like a
/// stream.
Tensor spectral_smoother(Tape& tape, const Tensor& x,
                         const std::shared_ptr<const SpectralSmoother>& smoother);

}  // namespace tessera::ops
