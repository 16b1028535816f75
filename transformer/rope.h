// Rotary position embedding (RoFormer, arXiv 2104.09864): pair i of a head is turned by position * theta^(-2i
// / head_dim). Angles are computed in double, so that they hold at any position, and cos and sin are rounded
// once to float. Leaves out: frequency scaling for longer contexts (YaRN).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

/// Which two channels of a head of D channels make up pair i.
enum class RopeLayout : std::uint8_t {
  half,         ///< i and i + D/2: the layout of the transformers library
  interleaved,  ///< 2i and 2i + 1: the layout of RoFormer's paper and of kyutai's checkpoints
};

class Rope {
 public:
  /// head_dim even, theta positive; throws UsageError otherwise.
  Rope(int head_dim, double theta, RopeLayout layout);

  /// Floats of the rotation of one position.
  int size() const { return 2 * static_cast<int>(frequencies_.size()); }
  /// rotation [size()]: the cosines of all pairs, then their sines.
  void rotation(std::int64_t position, float* rotation) const;
  /// Turns `heads` heads that lie side by side at x: (a, b) -> (a cos - b sin, b cos + a sin), each product
  /// and each sum rounded.
  void rotate(const float* rotation, float* x, int heads) const;

 private:
  std::vector<double> frequencies_;  // radians per position, one per pair
  RopeLayout layout_;
};

}  // namespace tessera
