#include "core/autograd/gain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"

namespace tessera::test {
namespace {

const std::vector<int> kBands = {4, 6, 11};

std::vector<double> split_reference(const std::vector<double>& x) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += 21) {
    std::vector<double> gains;
    std::size_t at = row;
    for (const int width : kBands) {
      double sum = 0;
      for (int c = 0; c < width; ++c) sum += std::pow(x[at + static_cast<std::size_t>(c)], 2);
      const double gain = std::sqrt(sum / width + 1e-6);
      for (int c = 0; c < width; ++c) y.push_back(x[at++] / gain);
      gains.push_back(std::log(gain));
    }
    y.insert(y.end(), gains.begin(), gains.end());
  }
  return y;
}

std::vector<double> join_reference(const std::vector<double>& x) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size(); row += 24) {
    std::size_t at = row, band = row + 21;
    for (const int width : kBands) {
      double sum = 0;
      for (int c = 0; c < width; ++c) sum += std::pow(x[at + static_cast<std::size_t>(c)], 2);
      const double gain = std::exp(x[band++]) / std::sqrt(sum / width + 1e-4);
      for (int c = 0; c < width; ++c) y.push_back(x[at++] * gain);
    }
  }
  return y;
}

TEST(GainOps, ValuesAndGradients) {
  OperationCase split;
  split.name = "split_gain";
  split.operation = [](Tape& tape, std::span<const Tensor> x) { return ops::split_gain(tape, x[0], kBands); };
  split.inputs = {random_tensor({3, 40, 21}, 1)};
  split.shape = {3, 40, 24};
  split.reference = [](const auto& x) { return split_reference(x[0]); };
  expect_operation(split);
  OperationCase join;
  join.name = "join_gain";
  join.operation = [](Tape& tape, std::span<const Tensor> x) { return ops::join_gain(tape, x[0], kBands); };
  join.inputs = {random_tensor({3, 40, 24}, 2)};
  join.shape = {3, 40, 21};
  join.reference = [](const auto& x) { return join_reference(x[0]); };
  expect_operation(join);
}

TEST(GainOps, RefusesBandsThatDoNotFit) {
  ThreadPool pool;
  Tape tape(pool);
  EXPECT_THROW(ops::join_gain(tape, Tensor::zeros({4, 21}), kBands), UsageError);
  EXPECT_THROW(ops::split_gain(tape, Tensor::zeros({4, 24}), kBands), UsageError);
  EXPECT_THROW(ops::split_gain(tape, Tensor::zeros({4, 0}), {}), UsageError);
}

}  // namespace
}  // namespace tessera::test
