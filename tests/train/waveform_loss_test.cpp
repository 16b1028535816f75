#include "train/losses/waveform_loss.h"

#include <gtest/gtest.h>

#include "core/autograd/elementwise.h"
#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/train/loss_signals.h"

namespace tessera::test {
namespace {

using train::NormalizedErrorOptions;

NormalizedErrorOptions with_pre_emphasis() {
  NormalizedErrorOptions o;
  o.pre_emphasis = 0.97f;
  return o;
}

// Reference values: PyTorch in double precision.
TEST(WaveformLoss, MatchesReferenceValues) {
  OneTape t;
  const auto [output, target] = two_clips(1200);
  EXPECT_NEAR(*train::waveform_l1(t.tape, output, target).f32(), 0.1307064827999596, 1e-7);
  EXPECT_NEAR(*train::normalized_error(t.tape, output, target).f32(), 1.2565158797840996, 2e-6);
  EXPECT_NEAR(*train::normalized_error(t.tape, output, target, with_pre_emphasis()).f32(), 1.9247312361960818,
              4e-6);
}

TEST(WaveformLoss, GradientsAreExact) {
  GradientCheck check;
  check.samples = 20;
  const std::vector<Tensor> inputs = {random_tensor({3, 70}, 1), random_tensor({3, 70}, 2)};
  for (const NormalizedErrorOptions& o : {NormalizedErrorOptions(), with_pre_emphasis()}) {
    expect_gradients(
        [&](Tape& tape, std::span<const Tensor> in) {
          return train::normalized_error(tape, in[0], in[1], o);
        },
        inputs, check);
  }
  // Differences away from the kink at 0.
  const Tensor target = Tensor::zeros({3, 70});
  check.step = 0.04;
  expect_gradients(
      [&](Tape& tape, std::span<const Tensor> in) { return train::waveform_l1(tape, in[0], target); },
      {random_nonzero({3, 70}, 3)}, check);
}

TEST(WaveformLoss, PreEmphasisIsAFirstDifference) {
  OperationCase c;
  c.name = "pre_emphasize";
  c.operation = [](Tape& tape, std::span<const Tensor> in) {
    return train::pre_emphasize(tape, in[0], 0.9f);
  };
  c.inputs = {random_tensor({2, 20}, 4)};
  c.shape = {2, 20};
  c.reference = [](const std::vector<std::vector<double>>& in) {
    std::vector<double> y = in[0];
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= i % 20 ? 0.9f * in[0][i - 1] : 0.0;
    return y;
  };
  expect_operation(c);
}

TEST(WaveformLoss, LevelsOfNormalizedError) {
  OneTape t;
  const Tensor target = random_tensor({2, 1000}, 5);
  EXPECT_EQ(*train::normalized_error(t.tape, target, target).f32(), 0.0f);
  EXPECT_EQ(*train::waveform_l1(t.tape, target, target).f32(), 0.0f);
  for (const float gain : {1.0f, 0.1f}) {
    const Tensor quiet = ops::affine(t.tape, target, gain);
    EXPECT_NEAR(*train::normalized_error(t.tape, Tensor::zeros({2, 1000}), quiet).f32(), 1, 1e-3) << gain;
  }
  // Silence: a hiss at the level of the floor is an error of 1.
  Tensor hiss = Tensor::zeros({2, 1000});
  for (std::int64_t i = 0; i < hiss.size(); ++i) hiss.f32()[i] = i % 2 ? 1e-3f : -1e-3f;
  EXPECT_NEAR(*train::normalized_error(t.tape, hiss, Tensor::zeros({2, 1000})).f32(), 1, 1e-5);
  EXPECT_EQ(*train::normalized_error(t.tape, Tensor::zeros({2, 9}), Tensor::zeros({2, 9})).f32(), 0.0f);
}

TEST(WaveformLoss, WrongUseThrows) {
  OneTape t;
  const Tensor x = Tensor::zeros({2, 10});
  for (const Tensor& wrong : {Tensor::zeros({2, 10, 1}), Tensor::zeros({2, 0}), Tensor::zeros({20}),
                              Tensor::zeros({2, 10}, DType::f64), Tensor()}) {
    EXPECT_THROW(train::waveform_l1(t.tape, wrong, wrong), UsageError);
    EXPECT_THROW(train::normalized_error(t.tape, x, wrong), UsageError);
    EXPECT_THROW(train::pre_emphasize(t.tape, wrong), UsageError);
  }
  EXPECT_THROW(train::waveform_l1(t.tape, x, Tensor::zeros({2, 11})), UsageError);
  NormalizedErrorOptions o;
  o.floor_rms = 0;
  EXPECT_THROW(train::normalized_error(t.tape, x, x, o), UsageError);
}

}  // namespace
}  // namespace tessera::test
