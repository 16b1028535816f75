// What a frame of a Mimi-shaped codec takes at the least: operations and weight bytes, counted from its
// sizes.
#pragma once

#include "tests/bench/machine.h"
#include "tests/codec/small_models.h"

namespace tessera::bench {

struct Cost {
  double flops = 0;  ///< two per multiply-add of the products; activations and attention scores are left out
  double bytes = 0;  ///< f32 weights read once

  /// Seconds that one core needs at the least: the larger of operations over peak and bytes over bandwidth.
  double roofline_s(const MachinePeak& peak) const;
};

/// One frame with the first `codebooks` codebooks.
Cost mimi_encode_cost(const test::MimiSizes& sizes, int codebooks);
Cost mimi_decode_cost(const test::MimiSizes& sizes, int codebooks);

}  // namespace tessera::bench
