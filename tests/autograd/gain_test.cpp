#include "core/autograd/gain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"

namespace tessera::test {
namespace {

std::vector<double> split_reference(const std::vector<double>& x, std::size_t channels) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += channels) {
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) sum += x[row + c] * x[row + c];
    const double gain = std::sqrt(sum / static_cast<double>(channels) + 1e-6);
    for (std::size_t c = 0; c < channels; ++c) y.push_back(x[row + c] / gain);
    y.push_back(std::log(gain));
  }
  return y;
}

std::vector<double> join_reference(const std::vector<double>& x, std::size_t channels) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += channels + 1) {
    for (std::size_t c = 0; c < channels; ++c) y.push_back(x[row + c] * std::exp(x[row + channels]));
  }
  return y;
}

TEST(GainOps, ValuesAndGradients) {
  OperationCase split;
  split.name = "split_gain";
  split.operation = [](Tape& tape, std::span<const Tensor> x) { return ops::split_gain(tape, x[0]); };
  split.inputs = {random_tensor({3, 40, 21}, 1)};
  split.shape = {3, 40, 22};
  split.reference = [](const auto& x) { return split_reference(x[0], 21); };
  expect_operation(split);
  OperationCase join;
  join.name = "join_gain";
  join.operation = [](Tape& tape, std::span<const Tensor> x) { return ops::join_gain(tape, x[0]); };
  join.inputs = {random_tensor({3, 40, 22}, 2)};
  join.shape = {3, 40, 21};
  join.reference = [](const auto& x) { return join_reference(x[0], 21); };
  expect_operation(join);
}

TEST(GainOps, RefusesRowsWithoutRoom) {
  ThreadPool pool;
  Tape tape(pool);
  EXPECT_THROW(ops::join_gain(tape, Tensor::zeros({4, 1})), UsageError);
  EXPECT_THROW(ops::split_gain(tape, Tensor::zeros({4, 0})), UsageError);
}

}  // namespace
}  // namespace tessera::test
