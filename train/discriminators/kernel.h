// The weights of one convolution of a discriminator. Weight normalization, which the papers use, is left out:
// what it guards against, steps that change the scale of a layer at once, AdamW bounds with plain weights,
// too, and the norm would cost an operation per layer and step.
#pragma once

#include <string>

#include "train/discriminators/discriminator.h"
#include "train/parameters.h"

namespace tessera::train {

struct Kernel {
  Tensor weight;  ///< outputs last
  Tensor bias;    ///< zero at first

  /// Adds `name`.weight and `name`.bias, drawn for a leaky ReLU of this slope behind it (1: none).
  static Kernel add(Parameters& parameters, const std::string& name, const Shape& shape, float slope) {
    Kernel kernel;
    kernel.weight = parameters.add(name + ".weight", shape, Init::fan_in(2.0f / (1.0f + slope * slope)));
    kernel.bias = parameters.add(name + ".bias", {shape[shape.rank() - 1]}, Init::zero());
    return kernel;
  }

  /// Itself, or off the tape if frozen.
  Kernel in(Mode mode) const {
    if (mode == Mode::learning) return *this;
    Kernel kernel;
    kernel.weight = weight.detached();
    kernel.bias = bias.detached();
    return kernel;
  }
};

}  // namespace tessera::train
