#include "train/losses/spectral_loss.h"

#include <gtest/gtest.h>

#include "core/autograd/elementwise.h"
#include "core/autograd/rearrange.h"
#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/train/loss_signals.h"

namespace tessera::test {
namespace {

using train::LogMelLoss;
using train::LogMelLossOptions;
using train::SpectrumKind;
using train::StftLoss;
using train::StftLossOptions;

LogMelLossOptions small_mels() {
  LogMelLossOptions o;
  o.scales = {{64, 10}, {128, 20}, {256, 40}, {512, 80}};
  o.log_l1 = 0;
  return o;
}

StftLossOptions small_windows(float convergence, float log_magnitude) {
  StftLossOptions o;
  o.windows = {128, 256, 512};
  o.convergence = convergence;
  o.log_magnitude = log_magnitude;
  return o;
}

template <class Loss>
float value(const Loss& loss, const Tensor& output, const Tensor& target) {
  OneTape t;
  const Tensor y = loss(t.tape, output, target);
  EXPECT_EQ(y.shape(), Shape{1});
  return *y.f32();
}

// Reference values of all losses here: PyTorch in double precision.
TEST(LogMelLoss, MatchesReferenceValues) {
  const auto [output, target] = two_clips(1200);
  LogMelLossOptions o = small_mels();
  o.log_l1 = 1;
  EXPECT_NEAR(value(LogMelLoss(o), output, target), 0.14028725614947724, 2e-6);
  o.log_l1 = 0;
  o.log_l2 = 2;
  EXPECT_NEAR(value(LogMelLoss(o), output, target), 2 * 0.08885472133395267, 4e-6);
  o.log_l2 = 0;
  o.linear_l1 = 3;
  EXPECT_NEAR(value(LogMelLoss(o), output, target), 3 * 0.006612047180928291, 1e-7);

  o = small_mels();
  o.kind = SpectrumKind::power;
  o.normalized = true;
  o.mel_scale = train::MelScale::htk;
  o.unit_area = false;
  o.floor = 1e-4f;
  o.log_l1 = 1;
  o.linear_l1 = 1;
  EXPECT_NEAR(value(LogMelLoss(o), output, target), 0.15583933421249013 + 0.04030950783397273, 3e-6);
}

TEST(StftLoss, MatchesReferenceValues) {
  const auto [output, target] = two_clips(1200);
  EXPECT_NEAR(value(StftLoss(small_windows(1, 0)), output, target), 0.5792503576878161, 4e-6);
  EXPECT_NEAR(value(StftLoss(small_windows(0, 2)), output, target), 2 * 0.5329187175217702, 6e-6);
}

// The output is louder than the target everywhere, which keeps away from the kinks of |difference|.
TEST(SpectralLosses, GradientsAreExact) {
  OneTape t;
  const Tensor target = random_tensor({2, 130}, 1), output = ops::affine(t.tape, target, 1.5f);
  GradientCheck check;
  check.samples = 25;
  check.step = 3e-3;
  check.tolerance = 1e-2;
  for (const int term : {0, 1, 2}) {
    SCOPED_TRACE(term);
    LogMelLossOptions o = small_mels();
    o.scales = {{32, 5}, {64, 10}};
    (term == 0 ? o.log_l1 : term == 1 ? o.log_l2 : o.linear_l1) = 1;
    const LogMelLoss mel(o);
    expect_gradients([&](Tape& tape, std::span<const Tensor> in) { return mel(tape, in[0], in[1]); },
                     {output, target}, check);
  }
  for (const int term : {0, 1}) {
    SCOPED_TRACE(term);
    StftLossOptions o = small_windows(term == 0 ? 1.0f : 0.0f, term == 1 ? 1.0f : 0.0f);
    o.windows = {32, 64};
    const StftLoss stft(o);
    expect_gradients([&](Tape& tape, std::span<const Tensor> in) { return stft(tape, in[0], in[1]); },
                     {output, target}, check);
  }
}

TEST(SpectralLosses, EqualClipsGiveZeroAndNoGradient) {
  const Tensor clips = two_clips(1200).first;
  LogMelLossOptions o = small_mels();
  o.log_l1 = o.log_l2 = o.linear_l1 = 1;
  const LogMelLoss mel(o);
  const StftLoss stft(small_windows(1, 1));
  const auto expect_zero = [&](const auto& loss) {
    OneTape t;
    const Tensor x = parameter(clips);
    const Tensor y = loss(t.tape, x, clips);
    EXPECT_EQ(*y.f32(), 0.0f);
    t.tape.backward(y);
    const Tensor g = gradient_of(x);
    for (std::int64_t i = 0; i < g.size(); ++i) ASSERT_EQ(g.f32()[i], 0.0f);
  };
  expect_zero(mel);
  expect_zero(stft);
}

TEST(SpectralLosses, SilenceDoesNotExplode) {
  const Tensor silence = Tensor::zeros({2, 2000});
  Tensor hiss = random_tensor({2, 2000}, 1, -1e-3f, 1e-3f);
  LogMelLossOptions o = small_mels();
  o.log_l1 = 1;
  const LogMelLoss mel(o);
  const StftLoss stft(small_windows(1, 0));
  EXPECT_EQ(value(mel, silence, silence), 0.0f);
  EXPECT_EQ(value(stft, silence, silence), 0.0f);
  EXPECT_LT(value(mel, hiss, silence), 3.0f);   // decades above the floor
  EXPECT_LT(value(stft, hiss, silence), 0.7f);  // noise of rms 6e-4 against a floor of 1e-3
  // Silence made where there was sound is an error of all of it.
  EXPECT_NEAR(value(stft, silence, random_tensor({2, 2000}, 2)), 1, 1e-3);
  for (const bool loud : {false, true}) {
    OneTape t;
    const Tensor x = parameter(loud ? hiss : silence);
    t.tape.backward(ops::add(t.tape, mel(t.tape, x, silence), stft(t.tape, x, silence)));
    const Tensor g = gradient_of(x);
    for (std::int64_t i = 0; i < g.size(); ++i) ASSERT_LT(std::abs(g.f32()[i]), 10.0f) << loud;
  }
}

// Means, not sums: a clip repeated, in time or as another item, has the loss that it had.
TEST(SpectralLosses, DoNotGrowWithLengthOrBatch) {
  const auto [output, target] = two_clips(1200);
  const auto [long_output, long_target] = two_clips(12000);
  LogMelLossOptions o = small_mels();
  o.log_l1 = 1;
  const LogMelLoss mel(o);
  EXPECT_NEAR(value(mel, long_output, long_target) / value(mel, output, target), 1, 0.15);
  OneTape t;
  const std::vector<Tensor> outputs = {output, output}, targets = {target, target};
  const StftLoss stft(small_windows(1, 1));
  EXPECT_NEAR(value(stft, ops::concat(t.tape, outputs, 0), ops::concat(t.tape, targets, 0)),
              value(stft, output, target), 1e-6);
}

TEST(LogMelLoss, DefaultsFitTheirRatesAndRulesMakeThem) {
  const std::vector<int> windows = {64, 128, 256, 512, 1024, 2048};
  const auto scales = train::log_mel_scales(windows, 16000);
  const LogMelLossOptions defaults;
  ASSERT_EQ(scales.size(), defaults.scales.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    EXPECT_EQ(scales[i].window, defaults.scales[i].window);
    EXPECT_EQ(scales[i].mels, defaults.scales[i].mels);
  }
  for (const int rate : {8000, 16000, 24000, 44100, 48000, 96000}) {
    for (const train::MelScale scale : {train::MelScale::slaney, train::MelScale::htk}) {
      LogMelLossOptions o;
      o.sample_rate_hz = rate;
      o.mel_scale = scale;
      o.scales =
          train::log_mel_scales(std::vector<int>{16, 32, 64, 100, 128, 512, 1024, 2048, 4096}, rate, scale);
      EXPECT_NO_THROW(LogMelLoss{o}) << rate;
    }
  }
  EXPECT_EQ(train::log_mel_scales(std::vector<int>{32}, 48000)[0].mels, 4);  // DAC's rule says 5
  EXPECT_THROW(train::log_mel_scales(windows, 0), UsageError);
  EXPECT_THROW(train::log_mel_scales(std::vector<int>{0}, 16000), UsageError);
}

TEST(SpectralLosses, WrongUseThrows) {
  LogMelLossOptions o = small_mels();
  EXPECT_THROW(LogMelLoss{o}, UsageError);  // weighs nothing
  o.log_l1 = 1;
  EXPECT_NO_THROW(LogMelLoss{o});
  o.floor = 0;
  EXPECT_THROW(LogMelLoss{o}, UsageError);
  o = LogMelLossOptions();
  o.kind = SpectrumKind::complex;
  EXPECT_THROW(LogMelLoss{o}, UsageError);
  o = LogMelLossOptions();
  o.scales.clear();
  EXPECT_THROW(LogMelLoss{o}, UsageError);
  o = LogMelLossOptions();
  o.linear_l1 = -1;
  EXPECT_THROW(LogMelLoss{o}, UsageError);
  o = LogMelLossOptions();
  o.scales = {{2, 1}};  // no hop
  EXPECT_THROW(LogMelLoss{o}, UsageError);
  EXPECT_THROW(StftLoss{small_windows(0, 0)}, UsageError);
  StftLossOptions s = small_windows(1, 1);
  s.windows.clear();
  EXPECT_THROW(StftLoss{s}, UsageError);

  OneTape t;
  const LogMelLoss mel;
  const StftLoss stft;
  const Tensor x = Tensor::zeros({1, 1025});
  EXPECT_NO_THROW(mel(t.tape, x, x));
  EXPECT_NO_THROW(stft(t.tape, x, x));
  for (const Tensor& wrong : {Tensor::zeros({1, 1024}), Tensor::zeros({1, 1025, 1}), Tensor::zeros({0, 1025}),
                              Tensor::zeros({1, 1025}, DType::f64), Tensor()}) {
    EXPECT_THROW(mel(t.tape, wrong, wrong), UsageError);
    EXPECT_THROW(stft(t.tape, wrong, wrong), UsageError);
    EXPECT_THROW(mel(t.tape, x, wrong), UsageError);
    EXPECT_THROW(stft(t.tape, x, wrong), UsageError);
  }
}

}  // namespace
}  // namespace tessera::test
