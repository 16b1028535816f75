// Losses that compare samples: they keep the phase that spectral losses do not see. Pre-emphasis (a first
// difference) weighs high frequencies up, which have little energy in speech.
#pragma once

#include "core/autograd/tape.h"

namespace tessera::train {

/// output, target [B, T] -> the mean |output - target|, [1].
Tensor waveform_l1(Tape& tape, const Tensor& output, const Tensor& target);

/// y[t] = x[t] - coefficient x[t - 1], x[-1] = 0. [B, T] -> [B, T]
Tensor pre_emphasize(Tape& tape, const Tensor& x, float coefficient = 0.97f);

struct NormalizedErrorOptions {
  float pre_emphasis = 0;  ///< coefficient; 0: none
  /// Root mean square of what is added to the target's energy: a clip that is more quiet than this weighs as
  /// if it were not.
  float floor_rms = 1e-3f;
};

/// output, target [B, T] -> the mean over clips of |output - target|^2 / (|target|^2 + T floor_rms^2), [1]:
/// 1 for an output of zeros, whatever the level. Both are pre-emphasized first if asked.
Tensor normalized_error(Tape& tape, const Tensor& output, const Tensor& target,
                        const NormalizedErrorOptions& options = {});

}  // namespace tessera::train
