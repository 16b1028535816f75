// A random permutation of 0..count-1 that needs no memory: a Feistel network over the smallest square power
// of four that holds the count, walked until it lands inside (Black and Rogaway 2002, "Ciphers with arbitrary
// finite domains"). Good enough for shuffling, no cipher.
#pragma once

#include <bit>
#include <cstdint>

#include "core/random.h"

namespace tessera::train {

class Shuffle {
 public:
  /// The permutation number `epoch` of `seed`; count >= 1.
  Shuffle(std::uint64_t seed, std::int64_t epoch, std::int64_t count)
      : key_(Random(seed, kStream, static_cast<std::uint64_t>(epoch)).next()),
        count_(static_cast<std::uint64_t>(count)),
        half_bits_((std::bit_width(count_ - 1) + 1) / 2) {}

  /// Where `index` (0 to count - 1) goes.
  std::int64_t operator()(std::int64_t index) const {
    if (half_bits_ == 0) return 0;
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    auto x = static_cast<std::uint64_t>(index);
    do {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const std::uint64_t left = x >> half_bits_, right = x & mask;
        x = right << half_bits_ | (left ^ (Random(key_, round, right).next() & mask));
      }
    } while (x >= count_);
    return static_cast<std::int64_t>(x);
  }

 private:
  static constexpr std::uint64_t kStream = 0x73687566;  // apart from the streams of the crops
  static constexpr std::uint64_t kRounds = 6;
  std::uint64_t key_, count_;
  int half_bits_;
};

}  // namespace tessera::train
