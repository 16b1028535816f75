#include "metrics/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "tests/core/on_every_target.h"
#include "tests/random.h"

namespace tessera::metrics {
namespace {

struct Case {
  std::int64_t rows, columns, inputs, outputs;
  bool pad_top, pad_bottom;
  std::string str() const {
    return std::to_string(rows) + " x " + std::to_string(columns) + ", " + std::to_string(inputs) + " to " +
           std::to_string(outputs) + (pad_top ? ", top" : "") + (pad_bottom ? ", bottom" : "");
  }
};
// Less than a tile, exactly one, several with and without a rest; more tiles than are computed together.
constexpr Case kCases[] = {
    {1, 1, 16, 16, true, true},    {3, 2, 16, 32, false, false},  {4, 4, 32, 16, true, true},
    {6, 8, 16, 16, false, false},  {5, 161, 48, 32, true, false}, {9, 161, 16, 16, false, true},
    {67, 40, 32, 16, true, false}, {30, 20, 16, 64, true, true},
};

Tensor random(const Shape& shape, std::uint64_t seed) {
  Tensor tensor = Tensor::zeros(shape);
  std::ranges::copy(test::random_floats(static_cast<std::size_t>(shape.size()), seed), tensor.f32());
  return tensor;
}

struct Problem {
  explicit Problem(const Case& c)
      : x(random({1, c.rows, c.columns, c.inputs}, 1)),
        weights(random({3, 3, c.inputs, c.outputs}, 2)),
        bias(random({c.outputs}, 3)) {}
  std::vector<float> run(const Case& c, ThreadPool& pool) const {
    Tape tape(pool);
    const Tensor y = WinogradConvolution(weights, bias).apply(tape, x, c.pad_top, c.pad_bottom);
    EXPECT_EQ(y.shape(), (Shape{1, c.rows - 2 + c.pad_top + c.pad_bottom, c.columns, c.outputs}));
    return {y.f32(), y.f32() + y.size()};
  }
  Tensor x, weights, bias;
};

// The definition, in double.
double direct(const Problem& p, const Case& c, std::int64_t row, std::int64_t column, std::int64_t output) {
  double sum = static_cast<double>(p.bias.f32()[output]);
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      const std::int64_t r = row + i - c.pad_top, s = column + j - 1;
      if (r < 0 || r >= c.rows || s < 0 || s >= c.columns) continue;
      for (std::int64_t k = 0; k < c.inputs; ++k) {
        sum += static_cast<double>(p.x.f32()[(r * c.columns + s) * c.inputs + k]) *
               static_cast<double>(p.weights.f32()[((i * 3 + j) * c.inputs + k) * c.outputs + output]);
      }
    }
  }
  return std::max(sum, 0.0);
}

TEST(Winograd, IsAConvolution) {
  ThreadPool pool(2);
  for (const Case& c : kCases) {
    const Problem problem(c);
    const std::vector<float> y = problem.run(c, pool);
    double error = 0, largest = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      const double want =
          direct(problem, c, place / c.outputs / c.columns, place / c.outputs % c.columns, place % c.outputs);
      error = std::max(error, std::abs(static_cast<double>(y[i]) - want));
      largest = std::max(largest, want);
    }
    EXPECT_GT(largest, 1) << c.str();
    EXPECT_LT(error, 1e-5 * largest) << c.str();
  }
}

TEST(Winograd, SameBitsOnEveryTargetAndForAnyThreads) {
  for (const Case& c : {kCases[2], kCases[4]}) {
    const Problem problem(c);
    ThreadPool one, three(3);
    test::expect_same_on_every_target([&] { return problem.run(c, one); });
    test::expect_same_bits(problem.run(c, three), problem.run(c, one), c.str());
  }
}

TEST(Winograd, RefusesOtherShapes) {
  const Tensor weights = random({3, 3, 16, 16}, 1), bias = random({16}, 2);
  EXPECT_THROW(WinogradConvolution(random({3, 5, 16, 16}, 1), bias), UsageError);
  EXPECT_THROW(WinogradConvolution(random({3, 3, 8, 16}, 1), bias), UsageError);
  EXPECT_THROW(WinogradConvolution(weights, random({32}, 2)), UsageError);
  const WinogradConvolution convolution(weights, bias);
  ThreadPool pool;
  Tape tape(pool);
  EXPECT_THROW(convolution.apply(tape, random({1, 4, 4, 32}, 1), true, true), UsageError);
  EXPECT_THROW(convolution.apply(tape, random({2, 4, 4, 16}, 1), true, true), UsageError);
  EXPECT_THROW(convolution.apply(tape, random({1, 2, 4, 16}, 1), false, false), UsageError);
}

}  // namespace
}  // namespace tessera::metrics
