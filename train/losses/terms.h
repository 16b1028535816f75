// What the losses share: their inputs, and sums of weighted terms.
#pragma once

#include <cmath>

#include "core/autograd/elementwise.h"
#include "core/autograd/op.h"
#include "core/autograd/reduce.h"
#include "core/autograd/tape.h"

namespace tessera::train {

/// Throws UsageError unless both are [B, T] of f32, equal and not empty.
inline void expect_clips(const char* op, const Tensor& output, const Tensor& target) {
  ops::expect_f32(op, "output", output);
  if (output.shape().rank() != 2 || output.size() < 1) fail(op, "output [B, T]", output.shape().str());
  ops::expect_shape(op, "target", target, output.shape());
}

/// The mean |a - b|, [1].
inline Tensor mean_difference(Tape& tape, const Tensor& a, const Tensor& b) {
  return ops::mean(tape, ops::abs(tape, ops::sub(tape, a, b)));
}

/// |difference|^2 / (|target|^2 + floor) for every item of the first axis, [B].
inline Tensor energy_ratio(Tape& tape, const Tensor& difference, const Tensor& target, float floor) {
  const Tensor error = ops::sum_items(tape, ops::square(tape, difference));
  const Tensor energy = ops::sum_items(tape, ops::square(tape, target));
  return ops::div(tape, error, ops::affine(tape, energy, 1.0f, floor));
}

/// sqrt(x) within 1e-6: 0 at 0, where the gradient is finite.
inline Tensor root(Tape& tape, const Tensor& x) {
  constexpr float kEps = 1e-12f;
  return ops::affine(tape, ops::sqrt(tape, x, kEps), 1.0f, -std::sqrt(kEps));
}

/// `sum` += weight term; the first term makes the sum. Both [1].
inline void add_term(Tape& tape, Tensor& sum, const Tensor& term, float weight) {
  const Tensor weighted = ops::affine(tape, term, weight);
  sum = sum.defined() ? ops::add(tape, sum, weighted) : weighted;
}

}  // namespace tessera::train
