// Element-wise functions. exp, tanh, erf, sin and the rest are our own polynomials (core/simd_math-inl.h),
// the same bits on every instruction set; each within a few units in the last place of the true value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

enum class Activation : std::uint8_t {
  none,
  elu,        ///< x > 0 ? x : exp(x) - 1
  gelu,       ///< x/2 (1 + erf(x / sqrt 2))
  gelu_tanh,  ///< the tanh approximation of gelu
  silu,       ///< x * sigmoid(x)
  relu,
  leaky_relu,  ///< slope 0.01
  tanh,
  sigmoid,
  exp,
  sin,  ///< for |x| up to 2^22; 0 beyond, where floats lie half a radian apart
  cos,  ///< cosine, on the same terms (1 beyond)
  erf,
  log,            ///< natural logarithm
  signed_sqrt,    ///< sign(x) sqrt(|x| + 1e-9), 0 at 0: companding of the tessera family
  signed_square,  ///< x |x|: its expansion
};

/// y[i] = f(x[i]); y may be x, but not overlap it otherwise. `none` copies. Infinities give the limits of f,
/// NaN gives NaN.
void activate(Activation f, const float* x, float* y, std::size_t count);
/// Snake: y = x + sin(alpha x)^2 / (alpha + 1e-9), alpha per channel; rows of `channels` floats; y may be x.
void snake(const float* x, const float* alpha, float* y, std::size_t rows, int channels);

/// y[i] += x[i]
void add(const float* x, float* y, std::size_t count);
/// y[t, c] *= scale[c]
void scale_channels(const float* scale, float* y, std::size_t rows, int channels);
/// y[i] *= gain running linearly from `from` (before the first row) to `to` (at the last): concealment fades.
void ramp(float from, float to, float* y, std::size_t rows, int channels);

}  // namespace tessera
