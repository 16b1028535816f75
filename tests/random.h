// Test input that is the same on every machine: integer arithmetic and exact conversions only, no libm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::test {

/// Uniform values in [-scale, scale).
inline std::vector<float> random_floats(std::size_t count, std::uint64_t seed, float scale = 1.0f) {
  std::vector<float> values(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 40) - (1 << 23)) * 0x1p-23f * scale;
  }
  return values;
}

/// A sound with pitch, swells and noise: triangle waves at a gliding frequency under a slow triangle
/// envelope.
inline std::vector<float> test_sound(std::size_t samples, std::uint64_t seed = 1) {
  std::vector<float> sound = random_floats(samples, seed, 0.02f);
  const auto triangle = [](std::uint32_t phase) {  // -1 to 1 over a turn of 2^32
    return static_cast<float>(static_cast<std::int32_t>(phase < 0x80000000u ? phase : ~phase) - (1 << 30)) *
           0x1p-30f;
  };
  std::uint32_t phase = 0, swell = static_cast<std::uint32_t>(seed * 77777777u), glide = 0;
  for (float& sample : sound) {
    glide += 101'000;
    swell += 700'000;
    phase += 25'000'000 + (glide >> 9);
    sample += (0.3f + 0.2f * triangle(swell)) * (triangle(phase) + 0.4f * triangle(3 * phase));
  }
  return sound;
}

}  // namespace tessera::test
