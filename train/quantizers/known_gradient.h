// Two operations with gradients that are given rather than derived, for quantizers.
#pragma once

#include <span>
#include <vector>

#include "core/autograd/tape.h"

namespace tessera::train {

/// `values`, with the gradient of `input`: what comes from above passes on unchanged. Equal shapes.
Tensor straight_through(Tape& tape, const Tensor& values, const Tensor& input);

/// d value / d input = factor * gradient
struct KnownGradient {
  Tensor input;
  Tensor gradient;  ///< of the input's shape, not recorded
  float factor = 1.0f;
};
/// A [1] of this value whose gradients are known.
Tensor with_gradients(Tape& tape, float value, std::span<const KnownGradient> gradients);

}  // namespace tessera::train
