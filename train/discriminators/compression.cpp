#include "train/discriminators/compression.h"

#include <cmath>

#include "core/autograd/op.h"

namespace tessera::train {
namespace {

// m^(-3/8) by square roots, which every CPU rounds alike.
float factor_of(float m) {
  const float quarter = std::sqrt(std::sqrt(m));
  return 1.0f / (quarter * std::sqrt(quarter));
}

float square_of(const float* x) {
  return x[0] * x[0] + x[1] * x[1] + kCompressionFloor;
}

}  // namespace

Tensor compress_magnitude(Tape& tape, const Tensor& x) {
  if (ops::channels_of("compress_magnitude", x) != 2) {
    fail("compress_magnitude", "x [..., 2], real and imaginary parts", x.shape().str());
  }
  Tensor y = tape.make(x.shape());
  ops::for_rows(tape.pool(), x.size() / 2, 2, [&](std::int64_t begin, std::int64_t count) {
    const float* in = x.f32() + 2 * begin;
    float* out = y.f32() + 2 * begin;
    for (std::int64_t i = 0; i < count; ++i) {
      const float factor = factor_of(square_of(in + 2 * i));
      out[2 * i] = in[2 * i] * factor;
      out[2 * i + 1] = in[2 * i + 1] * factor;
    }
  });
  return tape.record(y, {x}, [&tape, x = x.detached()](const Tensor& gradient, InputGradients& inputs) {
    Tensor dx = tape.make(x.shape());
    // dx = f (g - 3/4 (x . g) x / m)
    ops::for_rows(tape.pool(), x.size() / 2, 2, [&](std::int64_t begin, std::int64_t count) {
      const float *in = x.f32() + 2 * begin, *up = gradient.f32() + 2 * begin;
      float* out = dx.f32() + 2 * begin;
      for (std::int64_t i = 0; i < count; ++i) {
        const float *z = in + 2 * i, *g = up + 2 * i;
        const float square = square_of(z), factor = factor_of(square);
        const float pull = 0.75f * (z[0] * g[0] + z[1] * g[1]) / square;
        out[2 * i] = factor * (g[0] - pull * z[0]);
        out[2 * i + 1] = factor * (g[1] - pull * z[1]);
      }
    });
    inputs.add(0, dx);
  });
}

}  // namespace tessera::train
