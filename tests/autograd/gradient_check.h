// The test of operations with gradients: their values against a reference in double precision, their
// gradients against differences, and the same bits of both for any number of threads, on every instruction
// set, and whichever inputs gradients are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/tape.h"

namespace tessera::test {

/// Of the inputs alone: everything else is captured.
using Operation = std::function<Tensor(Tape& tape, std::span<const Tensor> inputs)>;

struct GradientCheck {
  double step = 1e-2;         ///< of differences, times max(1, |x|); inputs keep twice this from kinks
  double tolerance = 1e-3;    ///< of a gradient, times the largest one of that input
  std::int64_t samples = 60;  ///< elements of each input that are moved
  std::vector<int> threads = {2, 3};  ///< must give the bits of one thread
  bool every_target = true;           ///< and so must every instruction set
  Precision precision = Precision::f32;
};

/// Checks the gradients of c . operation(inputs), c random and fixed, to each input.
void expect_gradients(const Operation& operation, const std::vector<Tensor>& inputs,
                      const GradientCheck& check = {});

/// A row of a table of operations.
struct OperationCase {
  std::string name;
  Operation operation;
  std::vector<Tensor> inputs;
  Shape shape;  ///< of the result
  /// The result, element by element, from the inputs in double precision.
  std::function<std::vector<double>(const std::vector<std::vector<double>>& inputs)> reference;
  double tolerance = 1e-6;  ///< of values, times max(1, |value|)
  GradientCheck check = {};
};

/// Shape, values and gradients of one.
void expect_operation(const OperationCase& c);

/// Uniform values in [low, high).
Tensor random_tensor(const Shape& shape, std::uint64_t seed, float low = -1.0f, float high = 1.0f);
/// Uniform magnitudes in [low, high) of either sign: away from 0.
Tensor random_nonzero(const Shape& shape, std::uint64_t seed, float low = 0.1f, float high = 1.0f);
/// A permutation of equally spaced values from -1 to 1: no two are close.
Tensor random_distinct(const Shape& shape, std::uint64_t seed);
/// x in double precision.
std::vector<double> values_of(const Tensor& x);
/// Expects the same bits in both.
void expect_same_bits(const Tensor& got, const Tensor& want, const std::string& what);

}  // namespace tessera::test
