#include "train/losses/spectrogram.h"

#include <gtest/gtest.h>

#include <complex>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/train/loss_signals.h"

namespace tessera::test {
namespace {

using train::FrameDft;
using train::SpectrumKind;
using train::Stft;
using train::StftOptions;

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

StftOptions options(int window, int hop, ops::Padding padding = ops::Padding::reflect) {
  StftOptions o;
  o.window = window;
  o.hop = hop;
  o.padding = padding;
  return o;
}

// Sixteen frames of `length` samples through forward() and backward(), complex.
struct DftRun {
  explicit DftRun(int length)
      : window(size(length)), frames(random_tensor({16, length}, 1)), dft((fill(window), window)) {
    scratch = Tensor::zeros({static_cast<std::int64_t>(dft.scratch_floats())});
    const std::int64_t width = 2 * dft.bins();
    spectra = Tensor::zeros({16, width});
    gradients = random_tensor({16, width}, 2);
    back = Tensor::zeros({16, length});
    for (std::int64_t i = 0; i < 16; ++i) {
      in[i] = frames.f32() + i * length;
      out[i] = spectra.f32() + i * width;
      upstream[i] = gradients.f32() + i * width;
      down[i] = back.f32() + i * length;
    }
    dft.forward(in, SpectrumKind::complex, out, scratch.f32());
    dft.backward(in, SpectrumKind::complex, upstream, down, scratch.f32());
  }
  static void fill(std::vector<float>& window) {
    for (std::size_t i = 0; i < window.size(); ++i) window[i] = 0.5f + 0.01f * static_cast<float>(i % 50);
  }
  std::vector<float> window;
  Tensor frames;
  FrameDft dft;
  Tensor scratch, spectra, gradients, back;
  const float *in[16], *upstream[16];
  float *out[16], *down[16];
};

// Every kind of factor: none, 2, 4, odd primes, large ones, and mixtures.
TEST(FrameDft, IsTheDefinitionAndItsTransposeForAnyEvenLength) {
  for (const int length : {2, 4, 6, 8, 10, 16, 22, 24, 30, 64, 96, 126, 200, 254, 400, 512}) {
    SCOPED_TRACE(length);
    const DftRun run(length);
    for (const int row : {0, 5, 15}) {
      for (int k = 0; k <= length / 2; ++k) {
        std::complex<double> sum = 0;
        for (int n = 0; n < length; ++n) {
          sum += std::polar(double{run.window[size(n)]} * run.in[row][n],
                            -2 * std::numbers::pi * ((std::int64_t{n} * k) % length) / length);
        }
        ASSERT_NEAR(run.out[row][2 * k], sum.real(), 2e-6 * length) << row << ", bin " << k;
        ASSERT_NEAR(run.out[row][2 * k + 1], sum.imag(), 2e-6 * length) << row << ", bin " << k;
      }
      for (int n = 0; n < length; ++n) {
        double sum = 0;
        for (int k = 0; k <= length / 2; ++k) {
          const double angle = 2 * std::numbers::pi * ((std::int64_t{n} * k) % length) / length;
          sum += run.upstream[row][2 * k] * std::cos(angle) - run.upstream[row][2 * k + 1] * std::sin(angle);
        }
        ASSERT_NEAR(run.down[row][n], run.window[size(n)] * sum, 2e-6 * length) << row << ", sample " << n;
      }
    }
  }
}

TEST(FrameDft, LengthMustBeEven) {
  EXPECT_THROW(FrameDft(std::vector<float>(7)), UsageError);
  EXPECT_THROW(FrameDft(std::vector<float>()), UsageError);
}

// torch.stft(x, 32, 8, window=hann_window(32), center=True, pad_mode="reflect")
TEST(Stft, MatchesPyTorch) {
  OneTape t;
  const Tensor y = Stft(options(32, 8))(t.tape, signal(100, 0), SpectrumKind::complex);
  ASSERT_EQ(y.shape(), (Shape{1, 13, 17, 2}));
  const auto expect_bin = [&](int frame, int bin, double re, double im) {
    const float* value = y.f32() + 2 * (frame * 17 + bin);
    EXPECT_NEAR(value[0], re, 1e-6) << frame << ", " << bin;
    EXPECT_NEAR(value[1], im, 1e-6) << frame << ", " << bin;
  };
  expect_bin(0, 0, 2.557407246691411, 0);
  expect_bin(0, 3, 0.2799418522656022, 0);  // reflection about sample 0 makes this frame even
  expect_bin(5, 2, 1.3351774170190809, -0.9139792553744398);
  expect_bin(12, 16, -0.13489508982385345, 0);
  expect_bin(12, 7, 0.08336157082148567, -0.10275593209612104);
}

TEST(Stft, MagnitudeAndPowerAreThoseOfTheComplexSpectrum) {
  OneTape t;
  const Tensor x = random_tensor({2, 300}, 3);
  const Stft stft(options(48, 20, ops::Padding::zero));
  const Tensor complex = stft(t.tape, x, SpectrumKind::complex);
  const Tensor power = stft(t.tape, x, SpectrumKind::power);
  const Tensor magnitude = stft(t.tape, x, SpectrumKind::magnitude);
  ASSERT_EQ(power.shape(), (Shape{2, stft.frames(300), 25}));
  ASSERT_EQ(magnitude.shape(), power.shape());
  for (std::int64_t i = 0; i < power.size(); ++i) {
    const double want = std::norm(std::complex<double>(complex.f32()[2 * i], complex.f32()[2 * i + 1]));
    ASSERT_NEAR(power.f32()[i], want, 1e-6 * (1 + want));
    ASSERT_NEAR(magnitude.f32()[i], std::sqrt(want), 1e-6 * (1 + std::sqrt(want)));
  }
}

TEST(Stft, NormalizedNoiseKeepsItsMeanSquare) {
  OneTape t;
  for (const int window : {64, 1024}) {
    StftOptions o = options(window, window / 4);
    o.normalized = true;
    const Tensor power = Stft(o)(t.tape, random_tensor({1, 60000}, 4), SpectrumKind::power);
    double sum = 0;
    for (std::int64_t i = 0; i < power.size(); ++i) sum += power.f32()[i];
    EXPECT_NEAR(sum / static_cast<double>(power.size()), 1.0 / 3, 0.02)
        << window;  // uniform noise in [-1, 1)
  }
}

// Hops that divide the window and others, longer than it, clips that fill their frames and others, many
// groups of frames.
TEST(Stft, GradientsAreExact) {
  struct Case {
    int window, hop;
    ops::Padding padding;
    Shape x;
  };
  const Case cases[] = {{16, 4, ops::Padding::reflect, {2, 61}},
                        {12, 5, ops::Padding::zero, {1, 200}},
                        {8, 11, ops::Padding::zero, {2, 40}},
                        {30, 7, ops::Padding::reflect, {1, 16}},
                        {2, 1, ops::Padding::reflect, {1, 9}}};
  for (const Case& c : cases) {
    for (const SpectrumKind kind : {SpectrumKind::complex, SpectrumKind::power, SpectrumKind::magnitude}) {
      SCOPED_TRACE(std::to_string(c.window) + ", kind " + std::to_string(static_cast<int>(kind)));
      const Stft stft(options(c.window, c.hop, c.padding));
      GradientCheck check;
      check.samples = 20;
      check.step = kind == SpectrumKind::magnitude ? 1e-3 : 1e-2;
      check.tolerance = kind == SpectrumKind::magnitude ? 5e-3 : 1e-3;
      expect_gradients([&](Tape& tape, std::span<const Tensor> in) { return stft(tape, in[0], kind); },
                       {random_tensor(c.x, 5)}, check);
    }
  }
}

TEST(Stft, ValuesDoNotDependOnPrecisionOfProducts) {
  OneTape t;
  Tape bf16(t.pool, Precision::bf16);
  const Stft stft(options(64, 16));
  const Tensor x = random_tensor({1, 500}, 6);
  expect_same_bits(stft(bf16, x, SpectrumKind::complex), stft(t.tape, x, SpectrumKind::complex), "bf16");
}

TEST(Stft, SilenceHasFiniteGradients) {
  OneTape t;
  const Tensor x = parameter(Tensor::zeros({1, 100}));
  const Tensor y = Stft(options(16, 4))(t.tape, x, SpectrumKind::magnitude);
  for (std::int64_t i = 0; i < y.size(); ++i) ASSERT_LT(y.f32()[i], 1e-12f);
  t.tape.backward(y, random_tensor(y.shape(), 7));
  const Tensor g = gradient_of(x);
  for (std::int64_t i = 0; i < g.size(); ++i) ASSERT_EQ(g.f32()[i], 0.0f);
}

TEST(Stft, FreeFunctionIsTheComplexSpectrum) {
  OneTape t;
  const Tensor x = random_tensor({2, 100}, 8);
  expect_same_bits(ops::stft(t.tape, x, 32, 8), Stft(options(32, 8))(t.tape, x, SpectrumKind::complex),
                   "ops::stft");
}

TEST(Stft, WrongUseThrows) {
  OneTape t;
  EXPECT_THROW(Stft(options(15, 4)), UsageError);
  EXPECT_THROW(Stft(options(0, 4)), UsageError);
  EXPECT_THROW(Stft(options(32768, 4)), UsageError);
  EXPECT_THROW(Stft(options(16, 0)), UsageError);
  const Stft stft(options(16, 4));
  EXPECT_THROW(stft(t.tape, Tensor::zeros({1, 8}), SpectrumKind::power), UsageError);  // no 8 to reflect
  EXPECT_NO_THROW(stft(t.tape, Tensor::zeros({1, 9}), SpectrumKind::power));
  EXPECT_THROW(stft(t.tape, Tensor::zeros({100}), SpectrumKind::power), UsageError);
  EXPECT_THROW(stft(t.tape, Tensor::zeros({1, 100, 1}), SpectrumKind::power), UsageError);
  EXPECT_THROW(stft(t.tape, Tensor::zeros({0, 100}), SpectrumKind::power), UsageError);
  EXPECT_THROW(stft(t.tape, Tensor::zeros({1, 100}, DType::f64), SpectrumKind::power), UsageError);
  EXPECT_THROW(stft(t.tape, Tensor(), SpectrumKind::power), UsageError);
}

}  // namespace
}  // namespace tessera::test
