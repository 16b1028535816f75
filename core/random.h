// Random numbers that are the same on every machine: SplitMix64 (Steele, Lea and Flood 2014), one word of
// state. Whoever must go on after a stop seeds one from (seed, stream, step) instead of saving it.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/exact_math.h"

namespace tessera {

class Random {
 public:
  /// Different streams and steps of one seed are independent sequences.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0, std::uint64_t step = 0)
      : state_(mix(mix(mix(seed + kGamma) ^ (stream + 1) * 0xd1342543de82ef95u) ^
                   (step + 1) * 0xaf251af3b0f025b5u)) {}

  std::uint64_t next() { return mix(state_ += kGamma); }
  /// [0, 1), a multiple of 2^-24.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  /// 0 to count - 1, count >= 1; the bias is below count / 2^64.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  /// Of the standard normal distribution (Box and Muller 1958, one of the pair).
  float normal() {
    const double u = (static_cast<double>(next() >> 11) + 1) * 0x1p-53,
                 v = static_cast<double>(next() >> 11) * 0x1p-53;
    return static_cast<float>(std::sqrt(-2 * exact_log(u)) * exact_cos(6.283185307179586 * v));
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15u;
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace tessera
