// Sums, normalizations and softmax: values against double precision, the documented order of the sums, the
// same bits under every instruction set and for every length.
#include "core/norm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "tests/core/on_every_target.h"

namespace tessera {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The order that docs/determinism.md promises, written out.
float sum_in_stated_order(const std::vector<float>& x, const std::vector<float>* y = nullptr) {
  std::array<float, 16> sums{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    sums[i % 16] = y ? std::fma(x[i], (*y)[i], sums[i % 16]) : sums[i % 16] + x[i];
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

TEST(FixedSum, KeepsTheStatedOrderForEveryLength) {
  for (std::size_t count = 0; count <= 70; ++count) {
    const std::vector<float> x = test::noise(count, 10, 100.0f);
    const std::vector<float> y = test::noise(count, 11);
    EXPECT_EQ(fixed_sum(x.data(), count), sum_in_stated_order(x)) << count;
    EXPECT_EQ(fixed_dot(x.data(), y.data(), count), sum_in_stated_order(x, &y)) << count;
    test::expect_same_on_every_target([&] {
      return std::vector<float>{fixed_sum(x.data(), count), fixed_dot(x.data(), y.data(), count),
                                max_abs(x.data(), count)};
    });
  }
}

TEST(MaxAbs, FindsTheLargestAnywhereAndIgnoresNaN) {
  for (std::size_t place = 0; place < 70; ++place) {
    std::vector<float> x = test::noise(70, 12);
    x[place] = -50.0f;
    x[(place + 7) % 70] = kNaN;
    EXPECT_EQ(max_abs(x.data(), x.size()), 50.0f) << place;
  }
  EXPECT_EQ(max_abs(nullptr, 0), 0.0f);
  EXPECT_EQ(max_abs(&kNaN, 1), 0.0f);
}

struct NormInput {
  explicit NormInput(int channel_count, float deviation = 1.0f)
      : channels(static_cast<std::size_t>(channel_count)),
        x(test::noise(rows * channels, 13, deviation)),
        weight(test::noise(channels, 14)),
        bias(test::noise(channels, 15)) {
    for (std::size_t i = 0; i < channels; ++i) x[channels + i] += 40.0f;  // a row with a mean far from 0
  }
  std::size_t rows = 3;
  std::size_t channels;
  std::vector<float> x, weight, bias;
};

TEST(LayerNorm, AgreesWithDoublePrecision) {
  for (const int channels : {1, 5, 16, 64, 515}) {
    const NormInput in(channels);
    std::vector<float> y(in.x.size()), no_bias = in.x;
    layer_norm(in.x.data(), in.weight.data(), in.bias.data(), 1e-5f, y.data(), in.rows, channels);
    layer_norm(no_bias.data(), in.weight.data(), nullptr, 1e-5f, no_bias.data(), in.rows, channels);
    for (std::size_t t = 0; t < in.rows; ++t) {
      const float* row = &in.x[t * in.channels];
      double mean = 0.0, variance = 0.0;
      for (std::size_t c = 0; c < in.channels; ++c) mean += row[c] / channels;
      for (std::size_t c = 0; c < in.channels; ++c) variance += (row[c] - mean) * (row[c] - mean) / channels;
      for (std::size_t c = 0; c < in.channels; ++c) {
        const double want = (row[c] - mean) / std::sqrt(variance + 1e-5) * in.weight[c];
        EXPECT_NEAR(no_bias[t * in.channels + c], want, 2e-5) << t << " " << c;
        EXPECT_NEAR(y[t * in.channels + c], want + in.bias[c], 2e-5) << t << " " << c;
      }
    }
  }
}

TEST(RmsNorm, AgreesWithDoublePrecision) {
  for (const int channels : {1, 5, 16, 64, 515}) {
    for (const float deviation : {1.0f, 1e-4f}) {
      const NormInput in(channels, deviation);
      std::vector<float> y(in.x.size());
      rms_norm(in.x.data(), in.weight.data(), 1e-8f, y.data(), in.rows, channels);
      for (std::size_t t = 0; t < in.rows; ++t) {
        const float* row = &in.x[t * in.channels];
        double square = 0.0;
        for (std::size_t c = 0; c < in.channels; ++c) square += double{row[c]} * row[c] / channels;
        for (std::size_t c = 0; c < in.channels; ++c) {
          const double want = row[c] / std::sqrt(square + 1e-8) * in.weight[c];
          EXPECT_NEAR(y[t * in.channels + c], want, 1e-6 * (1.0 + std::abs(want))) << t << " " << c;
        }
      }
    }
  }
}

TEST(Norms, SilenceStaysSilence) {
  const std::vector<float> weight(20, 1.0f);
  std::vector<float> x(20, 0.0f), y(20);
  layer_norm(x.data(), weight.data(), nullptr, 1e-5f, y.data(), 1, 20);
  EXPECT_EQ(y, x);
  rms_norm(x.data(), weight.data(), 1e-5f, y.data(), 1, 20);
  EXPECT_EQ(y, x);
}

TEST(Softmax, AgreesWithDoublePrecision) {
  for (const int channels : {1, 3, 16, 100}) {
    const auto width = static_cast<std::size_t>(channels);
    const std::vector<float> x = test::noise(4 * width, 16, 5.0f);
    std::vector<float> y = x;
    softmax(y.data(), 4, channels);
    for (std::size_t t = 0; t < 4; ++t) {
      double sum = 0.0;
      for (std::size_t c = 0; c < width; ++c) sum += std::exp(double{x[t * width + c]});
      for (std::size_t c = 0; c < width; ++c) {
        const double want = std::exp(double{x[t * width + c]}) / sum;
        EXPECT_NEAR(y[t * width + c], want, 2e-6 * want);
      }
    }
  }
}

TEST(Softmax, MaskedAndExtremeRows) {
  std::vector<float> x = {-kInf, 3.0f, -kInf, 3.0f, 1e30f, -1e30f, 1e30f, 0.0f};
  softmax(x.data(), 2, 4);
  EXPECT_EQ(x, (std::vector<float>{0.0f, 0.5f, 0.0f, 0.5f, 0.5f, 0.0f, 0.5f, 0.0f}));
  std::vector<float> bad = {1.0f, kNaN, 2.0f};
  softmax(bad.data(), 1, 3);
  for (const float value : bad) EXPECT_TRUE(std::isnan(value));
}

TEST(Norms, SameBitsOnEveryTargetForEveryWidth) {
  for (int channels = 0; channels <= 70; ++channels) {
    const NormInput in(channels, 3.0f);
    test::expect_same_on_every_target([&] {
      std::vector<float> layer(in.x.size()), rms(in.x.size()), soft = in.x;
      layer_norm(in.x.data(), in.weight.data(), in.bias.data(), 1e-5f, layer.data(), in.rows, channels);
      rms_norm(in.x.data(), in.weight.data(), 1e-8f, rms.data(), in.rows, channels);
      softmax(soft.data(), in.rows, channels);
      layer.insert(layer.end(), rms.begin(), rms.end());
      layer.insert(layer.end(), soft.begin(), soft.end());
      return layer;
    });
  }
}

TEST(Norms, RejectNegativeChannels) {
  float value = 0.0f;
  EXPECT_THROW(layer_norm(&value, &value, nullptr, 1e-5f, &value, 1, -1), UsageError);
  EXPECT_THROW(rms_norm(&value, &value, 1e-5f, &value, 1, -1), UsageError);
  EXPECT_THROW(softmax(&value, 1, -1), UsageError);
}

}  // namespace
}  // namespace tessera
