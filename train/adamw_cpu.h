// The arithmetic of an AdamW step over a run of values.
#pragma once

#include <cstddef>

namespace tessera::train {

struct AdamWUpdate {
  float gradient_factor = 1;  ///< clipping
  float mean_rate = 0;        ///< 1 - beta1
  float square_keep = 0;      ///< beta2
  float square_rate = 0;      ///< 1 - beta2
  float value_keep = 1;       ///< 1 - learning rate * weight decay
  float step = 0;             ///< learning rate / (1 - beta1^t)
  float root_factor = 1;      ///< 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

/// Updates moments and values in place: with g = gradient_factor gradient,
///   mean += mean_rate (g - mean), square = square_keep square + square_rate g^2,
///   value = value_keep value - step mean / (root_factor sqrt(square) + epsilon).
void adamw_update(const AdamWUpdate& update, const float* gradient, float* mean, float* square, float* value,
                  std::size_t count);

}  // namespace tessera::train
