// Row-wise argmax: against a plain loop, exact ties, NaN, every width and instruction set.
#include "core/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "tests/core/on_every_target.h"

namespace tessera {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::int32_t plain_argmax(const float* x, int count) {
  int best = -1;
  for (int i = 0; i < count; ++i) {
    if (!std::isnan(x[i]) && (best < 0 || x[i] > x[best])) best = i;
  }
  return best < 0 ? 0 : best;
}

std::int32_t argmax(const std::vector<float>& x) {
  std::int32_t index = -7;
  argmax_rows(x.data(), 1, static_cast<int>(x.size()), 0, &index);
  return index;
}

TEST(ArgmaxRows, AgreesWithAPlainLoopOnEveryTarget) {
  const std::ptrdiff_t stride = 75;
  const std::size_t rows = 9;
  std::vector<float> scores = test::noise(rows * stride, 20, 2.0f);
  for (float& value : scores) value = std::round(value);  // many ties
  for (std::size_t i = 0; i < scores.size(); i += 11) scores[i] = kNaN;
  for (std::size_t i = 3; i < scores.size(); i += 17) scores[i] = -kInf;
  for (int count = 1; count <= 70; ++count) {
    std::vector<float> want;
    for (std::size_t t = 0; t < rows; ++t) {
      want.push_back(static_cast<float>(plain_argmax(&scores[t * stride], count)));
    }
    test::expect_same_on_every_target([&] {
      std::vector<std::int32_t> indices(rows);
      argmax_rows(scores.data(), rows, count, stride, indices.data());
      const std::vector<float> got(indices.begin(), indices.end());
      EXPECT_EQ(got, want) << count;
      return got;
    });
  }
}

TEST(ArgmaxRows, TiesGoToTheLowestIndexWhereverTheyAre) {
  for (std::size_t first = 0; first < 60; ++first) {
    for (std::size_t second = first; second < 60; second += 5) {
      std::vector<float> x(60, -1.0f);
      x[first] = x[second] = 2.0f;
      ASSERT_EQ(argmax(x), static_cast<std::int32_t>(first)) << second;
    }
  }
  EXPECT_EQ(argmax({-0.0f, 0.0f}), 0);
}

TEST(ArgmaxRows, NaNNeverWins) {
  EXPECT_EQ(argmax({kNaN, -kInf, kNaN, -kInf}), 1);
  EXPECT_EQ(argmax({kNaN, kNaN, -3.0f}), 2);
  EXPECT_EQ(argmax(std::vector<float>(40, kNaN)), 0);
  EXPECT_EQ(argmax({1.0f, kInf, kNaN, kInf}), 1);
}

TEST(ArgmaxRows, FindsEveryColumnOfACodebook) {
  std::vector<float> x(2048, 0.25f);
  for (std::size_t i = 0; i < x.size(); i += 37) {
    x[i] = 0.5f;
    ASSERT_EQ(argmax(x), static_cast<std::int32_t>(i));
    x[i] = 0.25f;
  }
}

TEST(ArgmaxRows, RejectsEmptyRows) {
  std::int32_t index = 0;
  EXPECT_THROW(argmax_rows(nullptr, 1, 0, 0, &index), UsageError);
}

}  // namespace
}  // namespace tessera
