// Plain scalar code in a fixed order of roundings: a rotation costs next to nothing beside the products
// around it, and its angles are made once per position for all layers and heads.
#include "transformer/rope.h"

#include <cmath>
#include <numbers>
#include <string>

#include "core/error.h"
#include "core/exact_math.h"

namespace tessera {

Rope::Rope(int head_dim, double theta, RopeLayout layout) : layout_(layout) {
  if (head_dim < 2 || head_dim % 2 != 0) fail("rope", "positive, even head_dim", std::to_string(head_dim));
  if (!(theta > 0)) fail("rope", "theta > 0", std::to_string(theta));
  for (int i = 0; i < head_dim / 2; ++i) frequencies_.push_back(exact_pow(theta, -2.0 * i / head_dim));
}

void Rope::rotation(std::int64_t position, float* rotation) const {
  const std::size_t pairs = frequencies_.size();
  for (std::size_t i = 0; i < pairs; ++i) {
    // fmod is exact: taking off whole turns costs no more accuracy than the product itself, at any position.
    const double angle = std::fmod(static_cast<double>(position) * frequencies_[i], 2 * std::numbers::pi);
    rotation[i] = static_cast<float>(exact_cos(angle));
    rotation[pairs + i] = static_cast<float>(exact_sin(angle));
  }
}

void Rope::rotate(const float* rotation, float* x, int heads) const {
  const int pairs = static_cast<int>(frequencies_.size());
  const int step = layout_ == RopeLayout::half ? 1 : 2;         // from pair to pair
  const int partner = layout_ == RopeLayout::half ? pairs : 1;  // from a to b
  const float* const cosines = rotation;
  const float* const sines = rotation + pairs;
  for (int head = 0; head < heads; ++head, x += 2 * pairs) {
    for (int i = 0; i < pairs; ++i) {
      const float a = x[i * step], b = x[i * step + partner];
      x[i * step] = a * cosines[i] - b * sines[i];
      x[i * step + partner] = b * cosines[i] + a * sines[i];
    }
  }
}

}  // namespace tessera
