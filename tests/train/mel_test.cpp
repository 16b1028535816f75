#include "train/losses/mel.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/train/loss_signals.h"

namespace tessera::test {
namespace {

using train::MelFilterbank;
using train::MelOptions;
using train::MelScale;

MelOptions options(int window, int mels, MelScale scale = MelScale::slaney, bool unit_area = true) {
  MelOptions o;
  o.window = window;
  o.mels = mels;
  o.scale = scale;
  o.unit_area = unit_area;
  return o;
}

double sum_of(const MelFilterbank& mels) {
  double sum = 0;
  for (int m = 0; m < mels.mels(); ++m) {
    for (int k = 0; k < mels.bins(); ++k) sum += mels.weight(m, k);
  }
  return sum;
}

TEST(Mel, ScalesAreTheirFormulas) {
  EXPECT_NEAR(train::hz_to_mel(MelScale::htk, 1000), 999.9855371396, 1e-8);
  EXPECT_NEAR(train::hz_to_mel(MelScale::htk, 700), 2595 * 0.30102999566398, 1e-8);
  EXPECT_NEAR(train::hz_to_mel(MelScale::slaney, 500), 7.5, 1e-12);
  EXPECT_NEAR(train::hz_to_mel(MelScale::slaney, 1000), 15, 1e-12);
  EXPECT_NEAR(train::hz_to_mel(MelScale::slaney, 6400), 42, 1e-12);
  for (const MelScale scale : {MelScale::slaney, MelScale::htk}) {
    for (const double hz : {0.0, 60.0, 999.0, 1001.0, 24000.0}) {
      EXPECT_NEAR(train::mel_to_hz(scale, train::hz_to_mel(scale, hz)), hz, 1e-9 * (1 + hz));
    }
  }
}

// Reference values in double precision with NumPy.
TEST(Mel, WeightsMatchReferenceValues) {
  struct Want {
    int mel, bin;
    double value;
  };
  struct Case {
    MelScale scale;
    bool unit_area;
    double sum;
    std::vector<Want> wants;
  };
  const Case cases[] = {
      {MelScale::slaney,
       true,
       1.2793331258034901,
       {{0, 1, 0.005773601070147668}, {5, 12, 0.0013208640292262921}, {39, 250, 0.0005696034011621892}}},
      {MelScale::slaney,
       false,
       245.4164870639413,
       {{0, 1, 0.42476468007841073},
        {5, 13, 0.5219408410193389},
        {20, 70, 0},
        {39, 240, 0.8554098735631447}}},
      {MelScale::htk,
       true,
       1.2780704562885628,
       {{0, 1, 0.015382952767930181}, {20, 63, 0.0014804462073838046}, {5, 13, 0}}},
      {MelScale::htk,
       false,
       246.8989121856843,
       {{0, 1, 0.7042400001487308}, {5, 12, 0.020921278707438696}, {39, 250, 0.3615296552442188}}}};
  for (const Case& c : cases) {
    const MelFilterbank mels(options(512, 40, c.scale, c.unit_area));
    EXPECT_NEAR(sum_of(mels), c.sum, 1e-6 * c.sum);
    for (const Want& want : c.wants) {
      EXPECT_NEAR(mels.weight(want.mel, want.bin), want.value, 1e-7) << want.mel << ", " << want.bin;
    }
  }
  MelOptions o = options(1024, 20);
  o.sample_rate_hz = 22050;
  o.lowest_hz = 100;
  o.highest_hz = 8000;
  const MelFilterbank limited(o);
  EXPECT_NEAR(limited.weight(0, 6), 0.001513989211982998, 1e-9);
  EXPECT_NEAR(limited.weight(10, 80), 0.0009612589960396245, 1e-9);
  EXPECT_NEAR(limited.weight(19, 340), 0.0006381897798149968, 1e-9);
  EXPECT_NEAR(sum_of(limited), 0.9288821068235312, 1e-6);
  EXPECT_EQ(limited.weight(0, 4), 0.0f);     // 86 Hz
  EXPECT_EQ(limited.weight(19, 372), 0.0f);  // 8011 Hz
}

TEST(Mel, AppliesItsWeightsAndTheirTranspose) {
  OperationCase c;
  c.name = "mel_filterbank";
  const MelFilterbank mels(options(64, 9));
  c.operation = [&](Tape& tape, std::span<const Tensor> in) { return mels(tape, in[0]); };
  c.inputs = {random_tensor({2, 7, 33}, 1, 0, 100)};
  c.shape = {2, 7, 9};
  c.reference = [&](const std::vector<std::vector<double>>& in) {
    std::vector<double> y;
    for (std::size_t row = 0; row < 14; ++row) {
      for (int m = 0; m < 9; ++m) {
        double sum = 0;
        for (int k = 0; k < 33; ++k) sum += mels.weight(m, k) * in[0][row * 33 + static_cast<std::size_t>(k)];
        y.push_back(sum);
      }
    }
    return y;
  };
  expect_operation(c);
}

TEST(Mel, WrongUseThrows) {
  OneTape t;
  EXPECT_THROW(MelFilterbank(options(64, 0)), UsageError);
  EXPECT_THROW(MelFilterbank(options(63, 10)), UsageError);
  EXPECT_THROW(MelFilterbank(options(64, 34)), UsageError);
  MelOptions o = options(64, 10);
  o.highest_hz = 8001;
  EXPECT_THROW(MelFilterbank{o}, UsageError);
  o.highest_hz = 100;
  o.lowest_hz = 100;
  EXPECT_THROW(MelFilterbank{o}, UsageError);
  o = options(64, 10);
  o.sample_rate_hz = 0;
  EXPECT_THROW(MelFilterbank{o}, UsageError);
  const MelFilterbank mels(options(64, 10));
  EXPECT_THROW(mels(t.tape, Tensor::zeros({2, 32})), UsageError);
  EXPECT_THROW(mels(t.tape, Tensor()), UsageError);
  EXPECT_THROW(mels.weight(10, 0), UsageError);
  EXPECT_THROW(mels.weight(0, -1), UsageError);
  // 30 mels from 33 bins: some would be 0 for every sound.
  try {
    const MelFilterbank empty(options(64, 30));
    FAIL() << "nothing thrown";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("250"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tessera::test
