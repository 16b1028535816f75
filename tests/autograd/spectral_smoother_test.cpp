#include "core/autograd/spectral_smoother.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/core/spectral_smoother_reference.h"

namespace tessera::test {
namespace {

const SpectralSmootherOptions kOptions{.hop = 20, .bins = 5, .before = 2, .after = 1};

TEST(SpectralSmootherOp, ValuesAndGradients) {
  constexpr int kClips = 3, kLength = 200;
  OperationCase c;
  c.name = "spectral_smoother";
  const auto smoother = std::make_shared<const SpectralSmoother>(kOptions);
  c.operation = [smoother](Tape& tape, std::span<const Tensor> x) {
    return ops::spectral_smoother(tape, x[0], smoother);
  };
  c.inputs = {random_tensor({kClips, kLength, 1}, 4)};
  c.shape = c.inputs[0].shape();
  c.reference = [](const auto& inputs) {
    std::vector<double> all;
    for (int i = 0; i < kClips; ++i) {
      const auto first = inputs[0].begin() + i * kLength;
      const std::vector<double> y = SpectralSmootherReference(kOptions, {first, first + kLength}).output();
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  };
  c.tolerance = 4e-6;
  expect_operation(c);
}

TEST(SpectralSmootherOp, RefusesPartsOfAHop) {
  ThreadPool pool(1);
  Tape tape(pool);
  const auto smoother = std::make_shared<const SpectralSmoother>(kOptions);
  EXPECT_THROW(ops::spectral_smoother(tape, Tensor::zeros({1, 30, 1}), smoother), UsageError);
  EXPECT_THROW(ops::spectral_smoother(tape, Tensor::zeros({1, 40, 2}), smoother), UsageError);
  EXPECT_THROW(ops::spectral_smoother(tape, Tensor::zeros({40, 1}), smoother), UsageError);
}

}  // namespace
}  // namespace tessera::test
