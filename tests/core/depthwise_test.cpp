// Depthwise convolutions against a plain loop with std::fma, which states the order of the sums: equal to the
// bit, for every instruction set.
#include "core/depthwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "tests/core/on_every_target.h"

namespace tessera {
namespace {

struct Shape {
  int kernel, stride, dilation, rows, channels;
};

std::vector<float> plain_conv(const Shape& s, const std::vector<float>& x, const std::vector<float>& weight,
                              const float* bias) {
  std::vector<float> out;
  for (int t = 0; t < s.rows; ++t) {
    for (int c = 0; c < s.channels; ++c) {
      float sum = bias ? bias[c] : 0.0f;
      for (int j = 0; j < s.kernel; ++j) {
        const int row = t * s.stride + j * s.dilation;
        sum = std::fma(x[static_cast<std::size_t>(row * s.channels + c)],
                       weight[static_cast<std::size_t>(j * s.channels + c)], sum);
      }
      out.push_back(sum);
    }
  }
  return out;
}

TEST(DepthwiseConv, EqualsAPlainLoopOnEveryTarget) {
  std::vector<Shape> shapes = {
      {1, 1, 1, 1, 1}, {7, 1, 1, 9, 64}, {3, 2, 1, 5, 33}, {4, 3, 5, 6, 17}, {7, 1, 9, 0, 4}};
  for (int channels = 0; channels <= 70; ++channels) shapes.push_back({3, 1, 2, 5, channels});
  for (const Shape& s : shapes) {
    const auto width = static_cast<std::size_t>(s.channels);
    const int in_rows = s.rows == 0 ? 0 : (s.rows - 1) * s.stride + (s.kernel - 1) * s.dilation + 1;
    const std::vector<float> x = test::noise(static_cast<std::size_t>(in_rows) * width, 30);
    const std::vector<float> weight = test::noise(static_cast<std::size_t>(s.kernel) * width, 31);
    const std::vector<float> bias = test::noise(width, 32);
    for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
      const std::vector<float> want = plain_conv(s, x, weight, b);
      test::expect_same_on_every_target([&] {
        std::vector<float> out(want.size() + 1, 5.0f);
        depthwise_conv(x.data(), weight.data(), b, s.kernel, s.stride, s.dilation, out.data(),
                       static_cast<std::size_t>(s.rows), s.channels);
        EXPECT_EQ(out.back(), 5.0f) << "wrote past the end";
        out.pop_back();
        test::expect_same_bits(out, want, "plain loop");
        return out;
      });
    }
  }
}

TEST(DepthwiseConvTransposed, EqualsAPlainLoopOnEveryTarget) {
  for (const Shape& s :
       {Shape{2, 2, 1, 6, 19}, Shape{1, 4, 1, 3, 16}, Shape{3, 5, 1, 7, 70}, Shape{2, 1, 1, 5, 1}}) {
    const auto width = static_cast<std::size_t>(s.channels);
    const auto taps = static_cast<std::size_t>(s.kernel), stride = static_cast<std::size_t>(s.stride);
    const auto rows = static_cast<std::size_t>(s.rows);
    const std::vector<float> x = test::noise((rows + taps - 1) * width, 33);
    const std::vector<float> weight = test::noise(taps * stride * width, 34);
    const std::vector<float> bias = test::noise(width, 35);
    std::vector<float> want(rows * stride * width);
    for (std::size_t t = 0; t < rows; ++t) {
      for (std::size_t j = 0; j < stride; ++j) {
        for (std::size_t c = 0; c < width; ++c) {
          float sum = bias[c];
          for (std::size_t m = 0; m < taps; ++m) {
            sum = std::fma(x[(t + m) * width + c], weight[(m * stride + j) * width + c], sum);
          }
          want[(t * stride + j) * width + c] = sum;
        }
      }
    }
    test::expect_same_on_every_target([&] {
      std::vector<float> out(want.size());
      depthwise_conv_transposed(x.data(), weight.data(), bias.data(), s.kernel, s.stride, out.data(), rows,
                                s.channels);
      test::expect_same_bits(out, want, "plain loop");
      return out;
    });
  }
}

TEST(DepthwiseConv, RejectsImpossibleArguments) {
  float v = 0.0f;
  EXPECT_THROW(depthwise_conv(&v, &v, nullptr, 0, 1, 1, &v, 1, 1), UsageError);
  EXPECT_THROW(depthwise_conv(&v, &v, nullptr, 1, 0, 1, &v, 1, 1), UsageError);
  EXPECT_THROW(depthwise_conv(&v, &v, nullptr, 1, 1, 0, &v, 1, 1), UsageError);
  EXPECT_THROW(depthwise_conv(&v, &v, nullptr, 1, 1, 1, &v, 1, -1), UsageError);
  EXPECT_THROW(depthwise_conv_transposed(&v, &v, nullptr, 0, 1, &v, 1, 1), UsageError);
  EXPECT_THROW(depthwise_conv_transposed(&v, &v, nullptr, 1, 0, &v, 1, 1), UsageError);
}

}  // namespace
}  // namespace tessera
