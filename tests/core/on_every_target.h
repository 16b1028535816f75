// Runs a function under every instruction set of this CPU and compares the bits of what it gives. All NaNs
// count as equal: their payloads are not promised (docs/determinism.md).
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/cpu.h"

namespace tessera::test {

inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want,
                             const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(same_bits(got[i], want[i]))
        << what << ", element " << i << ": " << got[i] << " and " << want[i];
  }
}

/// `run` returns the floats to compare.
template <class Run>
void expect_same_on_every_target(const Run& run) {
  const std::vector<float> want = run();
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target)) << target;
    const std::vector<float> got = run();
    ASSERT_TRUE(set_cpu_target(""));
    expect_same_bits(got, want, target);
  }
}

/// Normally distributed values.
inline std::vector<float> noise(std::size_t count, unsigned seed, float deviation = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

}  // namespace tessera::test
