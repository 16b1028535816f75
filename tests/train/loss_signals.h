// Clips that the tests of losses compare, made by a formula: reference values were computed from the same
// formula with PyTorch in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include "core/autograd/tape.h"
#include "core/tensor.h"

namespace tessera::test {

/// A slow and a faster sine and a repeating pattern of noise.
inline void fill_signal(float* x, std::int64_t count, int seed, float gain = 1.0f) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i), s = seed;
    const double noise = static_cast<double>((i * 7919 + seed * 131) % 1000) / 1000 - 0.5;
    x[i] = gain * static_cast<float>(0.3 * std::sin(0.05 * t + s) +
                                     0.2 * std::sin(0.31 * t * (1 + 0.1 * s) + 1) + 0.1 * noise);
  }
}

/// [1, count]
inline Tensor signal(std::int64_t count, int seed) {
  Tensor x = Tensor::zeros({1, count});
  fill_signal(x.f32(), count, seed);
  return x;
}

/// An output and a target [2, count] that differ, the second clip 20 dB below the first.
inline std::pair<Tensor, Tensor> two_clips(std::int64_t count) {
  std::pair<Tensor, Tensor> clips = {Tensor::zeros({2, count}), Tensor::zeros({2, count})};
  fill_signal(clips.first.f32(), count, 0);
  fill_signal(clips.first.f32() + count, count, 3, 0.1f);
  fill_signal(clips.second.f32(), count, 1);
  fill_signal(clips.second.f32() + count, count, 2, 0.1f);
  return clips;
}

/// A pool of one thread and a tape on it.
struct OneTape {
  ThreadPool pool;
  Tape tape{pool};
};

}  // namespace tessera::test
