#include "core/autograd/pitch_filter.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/core/pitch_filter_reference.h"

namespace tessera::test {
namespace {

const PitchFilterOptions kOptions{
    .hop = 200, .shortest = 5, .longest = 60, .before = 2, .after = 1, .smoothing = 6, .strength = 0.9f};

// Clips of one period over and over, compared where they are: weights are whole, so that differences see no
// change of them.
TEST(PitchFilterOp, ValuesAndGradients) {
  constexpr int kClips = 3, kLength = 600, kPeriod = 35;
  OperationCase c;
  c.name = "pitch_filter";
  const auto filter = std::make_shared<const PitchFilter>(kOptions);
  c.operation = [filter](Tape& tape, std::span<const Tensor> x) {
    return ops::pitch_filter(tape, x[0], filter);
  };
  Tensor x = random_tensor({kClips, kLength, 1}, 4);
  for (int i = 0; i < kClips; ++i) {
    for (int n = kPeriod; n < kLength; ++n) {
      x.f32()[i * kLength + n] = x.f32()[i * kLength + n % kPeriod];
    }
  }
  c.inputs = {x};
  c.shape = x.shape();
  c.reference = [](const auto& inputs) {
    std::vector<double> all;
    for (int i = 0; i < kClips; ++i) {
      const auto first = inputs[0].begin() + i * kLength;
      const std::vector<double> y = PitchFilterReference(kOptions, {first, first + kLength}).output();
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  };
  expect_operation(c);
}

TEST(PitchFilterOp, RefusesPartsOfAHop) {
  ThreadPool pool;
  Tape tape(pool);
  const auto filter = std::make_shared<const PitchFilter>(kOptions);
  EXPECT_THROW(ops::pitch_filter(tape, Tensor::zeros({1, 300, 1}), filter), UsageError);
  EXPECT_THROW(ops::pitch_filter(tape, Tensor::zeros({1, 400, 2}), filter), UsageError);
  EXPECT_THROW(ops::pitch_filter(tape, Tensor::zeros({400, 1}), filter), UsageError);
}

}  // namespace
}  // namespace tessera::test
