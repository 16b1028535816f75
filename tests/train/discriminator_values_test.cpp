// Discriminators against plain loops in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/random.h"
#include "train/discriminators/period_discriminator.h"
#include "train/discriminators/stft_discriminator.h"

namespace tessera::train {
namespace {

constexpr double kPi = 3.141592653589793;

Tensor sound(std::int64_t batch, std::int64_t samples, std::uint64_t seed) {
  Tensor x = Tensor::zeros({batch, samples});
  const std::vector<float> values = test::random_floats(static_cast<std::size_t>(x.size()), seed, 0.5f);
  std::copy(values.begin(), values.end(), x.f32());
  return x;
}

StftDiscriminatorConfig stft_of(int window) {
  StftDiscriminatorConfig config;
  config.windows = {window};
  config.channels = 3;
  config.dilations = {1, 2};
  return config;
}

struct Grid {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<double> values = {};
  double at(std::int64_t h, std::int64_t w, std::int64_t c) const {
    const bool inside = h >= 0 && h < height && w >= 0 && w < width;
    return inside ? values[static_cast<std::size_t>((h * width + w) * channels + c)] : 0.0;
  }
};

// 'Same' padding; `w` [KH, KW, C, O].
Grid convolve(const Grid& x, const Tensor& w, const Tensor& bias, int dilation, int stride_h, int stride_w,
              double slope) {
  const std::int64_t kh = w.dim(0), kw = w.dim(1), inputs = w.dim(2), outputs = w.dim(3);
  Grid y;
  y.height = (x.height + stride_h - 1) / stride_h;
  y.width = (x.width + stride_w - 1) / stride_w;
  y.channels = outputs;
  for (std::int64_t h = 0; h < y.height; ++h)
    for (std::int64_t v = 0; v < y.width; ++v)
      for (std::int64_t o = 0; o < outputs; ++o) {
        double sum = bias.f32()[o];
        for (std::int64_t i = 0; i < kh; ++i)
          for (std::int64_t j = 0; j < kw; ++j)
            for (std::int64_t c = 0; c < inputs; ++c)
              sum += x.at(h * stride_h + (i - kh / 2) * dilation, v * stride_w + j - kw / 2, c) *
                     static_cast<double>(w.f32()[((i * kw + j) * inputs + c) * outputs + o]);
        y.values.push_back(sum > 0 ? sum : slope * sum);
      }
  return y;
}

void expect_near(const Tensor& got, const Grid& expected) {
  ASSERT_EQ(got.size(), static_cast<std::int64_t>(expected.values.size()));
  for (std::int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got.f32()[i], expected.values[static_cast<std::size_t>(i)], 1e-5) << i;
}

TEST(StftDiscriminator, IsConvolutionsOverTheComplexSpectrum) {
  ThreadPool pool;
  Tape tape(pool);
  Parameters parameters(4);
  const StftDiscriminator discriminator(parameters, "d", stft_of(16));
  const std::int64_t window = 16, hop = 4, samples = 77;
  const Tensor x = sound(1, samples, 9);

  Grid y;
  y.height = 1 + samples / hop;
  y.width = window / 2 + 1;
  y.channels = 2;
  for (std::int64_t f = 0; f < y.height; ++f)
    for (std::int64_t bin = 0; bin < y.width; ++bin) {
      std::complex<double> sum = 0;
      double energy = 0;
      for (std::int64_t n = 0; n < window; ++n) {
        const double hann = 0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(n) / window);
        energy += hann * hann;
        std::int64_t t = std::abs(f * hop - window / 2 + n);  // reflected at both ends
        if (t >= samples) t = 2 * (samples - 1) - t;
        sum += hann * x.f32()[t] * std::polar(1.0, -2 * kPi * static_cast<double>(bin * n) / window);
      }
      y.values.push_back(sum.real() / std::sqrt(energy));
      y.values.push_back(sum.imag() / std::sqrt(energy));
    }
  const auto layer = [&](const std::string& name, int dilation, int stride, double slope) {
    y = convolve(y, parameters.find("d.16." + name + ".weight"), parameters.find("d.16." + name + ".bias"),
                 dilation, 1, stride, slope);
  };
  const Judgement judgement = discriminator.judge(tape, x);
  ASSERT_EQ(judgement.scores.size(), 1u);
  ASSERT_EQ(judgement.features.size(), 1u);
  ASSERT_EQ(judgement.features[0].size(), 4u);
  const int dilations[] = {1, 1, 2, 1}, strides[] = {1, 2, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    layer("band0." + std::to_string(i), dilations[i], strides[i], 0.2f);
    expect_near(judgement.features[0][i], y);
  }
  layer("last", 1, 1, 1.0);
  expect_near(judgement.scores[0], y);
}

TEST(StftDiscriminator, BandsSeeTheirBinsOnlyAndMeetInTheLastLayer) {
  ThreadPool pool;
  Tape tape(pool);
  Parameters parameters(4);
  StftDiscriminatorConfig config = stft_of(64);
  config.bands = {0.25, 1.0};
  const StftDiscriminator discriminator(parameters, "d", config);
  const Judgement judgement = discriminator.judge(tape, sound(2, 200, 3));
  ASSERT_EQ(judgement.features[0].size(), 8u);  // 4 of each band
  EXPECT_EQ(judgement.features[0][0].dim(2), 8);
  EXPECT_EQ(judgement.features[0][4].dim(2), 25);
  EXPECT_EQ(judgement.scores[0].dim(2), 2 + 7);  // halved twice
}

TEST(PeriodDiscriminator, IsConvolutionsOverEachPhase) {
  ThreadPool pool;
  Tape tape(pool);
  Parameters parameters(4);
  PeriodDiscriminatorConfig config;
  config.periods = {2, 5};
  config.channels = 3;
  config.layers = 2;
  const PeriodDiscriminator discriminator(parameters, "d", config);
  const std::int64_t samples = 83;  // 84 = 2 * 42, 85 = 5 * 17: both padded
  const Tensor x = sound(2, samples, 10);
  const Judgement judgement = discriminator.judge(tape, x);
  ASSERT_EQ(judgement.scores.size(), 2u);
  const std::vector<std::int64_t> periods{2, 5};
  for (std::size_t i = 0; i < periods.size(); ++i) {
    const std::int64_t p = periods[i];
    const std::string name = "d." + std::to_string(p) + ".";
    const auto weight = [&](const std::string& layer) {
      const Tensor w = parameters.find(name + layer + ".weight");
      return w.reshaped({w.dim(0), 1, w.dim(1), w.dim(2)});
    };
    Grid scores;  // of all phases of the batch, one after the other
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t phase = 0; phase < p; ++phase) {
        Grid y;
        y.height = (samples + p - 1) / p;
        y.width = y.channels = 1;
        for (std::int64_t t = 0; t < y.height; ++t) {
          const std::int64_t at = t * p + phase;
          y.values.push_back(x.f32()[b * samples + (at < samples ? at : 2 * (samples - 1) - at)]);
        }
        y = convolve(y, weight("0"), parameters.find(name + "0.bias"), 1, 3, 1, 0.1f);
        y = convolve(y, weight("1"), parameters.find(name + "1.bias"), 1, 3, 1, 0.1f);
        y = convolve(y, weight("last"), parameters.find(name + "last.bias"), 1, 1, 1, 1.0);
        scores.values.insert(scores.values.end(), y.values.begin(), y.values.end());
      }
    expect_near(judgement.scores[i], scores);
  }
}

}  // namespace
}  // namespace tessera::train
