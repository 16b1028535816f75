// Operations on each element, with gradients. Tensors are f32. Shared out over the tape's threads in fixed
// blocks.
#pragma once

#include "core/activation.h"
#include "core/autograd/tape.h"

namespace tessera::ops {

/// a + b, a - b, a b, a / b. Equal shapes.
Tensor add(Tape& tape, const Tensor& a, const Tensor& b);
Tensor sub(Tape& tape, const Tensor& a, const Tensor& b);
Tensor mul(Tape& tape, const Tensor& a, const Tensor& b);
Tensor div(Tape& tape, const Tensor& a, const Tensor& b);
/// factor a + offset
Tensor affine(Tape& tape, const Tensor& a, float factor, float offset = 0.0f);
/// x [..., C] + bias [C], x [..., C] times scale [C].
Tensor add_rows(Tape& tape, const Tensor& x, const Tensor& bias);
Tensor mul_rows(Tape& tape, const Tensor& x, const Tensor& scale);
/// x [M, ...] times factor [M]: every item of the first axis by its own.
Tensor mul_items(Tape& tape, const Tensor& x, const Tensor& factor);

/// f(x) for every Activation (core/activation.h).
Tensor activate(Tape& tape, Activation f, const Tensor& x);
/// x > 0 ? x : slope x
Tensor leaky_relu(Tape& tape, const Tensor& x, float slope);
Tensor abs(Tape& tape, const Tensor& x);
Tensor square(Tape& tape, const Tensor& x);
/// sqrt(x + eps), x >= 0: eps keeps the gradient finite at 0.
Tensor sqrt(Tape& tape, const Tensor& x, float eps);
/// max(x, floor); no gradient where the floor won.
Tensor at_least(Tape& tape, const Tensor& x, float floor);

/// `y` += `x` in place; not recorded.
void add_to(Tape& tape, const Tensor& x, Tensor& y);

}  // namespace tessera::ops
