// The loops of elementwise.cpp and reduce.cpp over plain arrays (elementwise_cpu.cpp, rows_cpu.cpp): one pass
// over memory each, the same bits on every instruction set. Outputs may be one of the inputs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::ops {

enum class Binary : std::uint8_t { add, sub, mul, div };
/// y[i] = a[i] op b[i]
void binary(Binary op, const float* a, const float* b, float* y, std::size_t count);
/// y[t, c] = x[t, c] op row[c] for add and mul.
void binary_rows(Binary op, const float* x, const float* row, float* y, std::size_t rows,
                 std::size_t channels);

enum class Unary : std::uint8_t {
  affine,      ///< p x + q
  leaky_relu,  ///< x > 0 ? x : p x
  abs,
  square,
  sqrt,      ///< sqrt(x + p)
  at_least,  ///< max(x, p); NaN stays
};
void unary(Unary op, const float* x, float* y, std::size_t count, float p = 0.0f, float q = 0.0f);

/// Derivatives of functions y = f(x). A name ending in _y means that it is written in terms of y, so that x
/// need not be kept.
enum class Slope : std::uint8_t {
  elu_y,
  tanh_y,
  sigmoid_y,
  exp_y,
  step_y,         ///< 1 for y > 0, else p: relu and leaky_relu
  signed_sqrt_y,  ///< that of y != 0 continued to 0
  sqrt_y,
  gelu,
  gelu_tanh,
  silu,
  sin,
  cos,
  erf,
  log,
  signed_square,
  abs,       ///< sign(x)
  square,    ///< 2 x
  at_least,  ///< 1 for x > p, else 0
};
/// dx[i] = g[i] f'(r[i]), where r is x or y.
void times_slope(Slope slope, const float* r, const float* g, float* dx, std::size_t count, float p = 0.0f);
/// db[i] = -g[i] y[i] / b[i]: the gradient of y = a / b to b.
void divisor_gradient(const float* g, const float* y, const float* b, float* db, std::size_t count);

}  // namespace tessera::ops
