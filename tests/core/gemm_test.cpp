// The matrix product against a double-precision product and against the chain of fused multiply-adds that it
// promises, over shapes, layouts of rows, starts, weight types, instruction sets and thread counts.
#include "core/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/cpu.h"
#include "core/error.h"
#include "tests/core/gemm_problem.h"

namespace tessera {
namespace {

using namespace gemm_testing;

// Tiles and remainders of every height, partly filled panels, blocks of k, one and two columns, the layers of
// a codec.
const GemmShape kShapes[] = {
    {1, 1, 1},        {1, 7, 16},      {2, 32, 48},    {3, 5, 17},        {4, 64, 1},
    {5, 9, 130, 3},   {6, 16, 64},     {7, 33, 31},    {8, 300, 70, 2},   {9, 4, 64},
    {13, 520, 80, 2}, {16, 96, 33, 3}, {17, 258, 20},  {26, 520, 65, 4},  {70, 24, 1, 8},
    {37, 11, 1},      {33, 13, 2},     {5, 259, 2, 7}, {200, 7, 18},      {395, 3, 5},
    {1, 600, 200},    {2, 8, 272},     {12, 1040, 16}, {40, 12, 100, 12}, {19, 600, 35, 3}};

// One run of the body per instruction set.
class GemmTest : public ::testing::Test {
 protected:
  template <class Body>
  void on_every_target(const Body& body) {
    for (const std::string& target : available_cpu_targets()) {
      SCOPED_TRACE(target);
      set_cpu_target(target).value();
      body();
    }
  }
  void TearDown() override { set_cpu_target("").value(); }
};

constexpr GemmStart kStarts[] = {GemmStart::zero, GemmStart::bias, GemmStart::output};
constexpr WeightType kTypes[] = {WeightType::f32, WeightType::bf16, WeightType::i8};

TEST_F(GemmTest, AgreesWithADoublePrecisionProduct) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(name_of(shape));
    const GemmProblem p(shape, WeightType::f32);
    const std::vector<float> out = p.run(GemmStart::bias);
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < shape.n; ++j) {
        double sum = p.bias[static_cast<std::size_t>(j)];
        for (int q = 0; q < shape.k; ++q) sum += static_cast<double>(p.row_value(i, q)) * p.weight(q, j);
        ASSERT_NEAR(out[static_cast<std::size_t>(i * (shape.n + 3) + j)], sum,
                    2e-6 * std::sqrt(shape.k) + 1e-6);
      }
    }
  }
}

TEST_F(GemmTest, IsOneChainOfFusedMultiplyAddsOnEveryTarget) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(name_of(shape));
    const GemmProblem p(shape, WeightType::f32);
    for (const GemmStart start : kStarts) {
      const std::vector<float> expected = gemm_chain(p, start);
      on_every_target([&] { EXPECT_TRUE(same_bits(p.run(start), expected)); });
    }
  }
}

// Sums so close to halfway between two floats that a detour over double, rounded twice, goes to the wrong
// one.
TEST_F(GemmTest, RoundsOnceWhereTwoRoundingsDiffer) {
  std::mt19937 random(3);
  std::vector<float> starts, weights;
  const float x = 1 + 0x1p-23f;
  for (int i = 0; i < 20000; ++i) {
    const int exponent = static_cast<int>(random() % 250) - 125;
    const float sign = random() % 2 != 0 ? 1.0f : -1.0f;
    const float scale = std::ldexp(1.0f, exponent);
    starts.push_back(sign * scale * (1 + static_cast<float>(random() % 0x800000) * 0x1p-23f));
    if (i % 2 == 0) {  // just below or above half of the last place of the start
      const float near_one = random() % 2 != 0 ? 1 - 0x1p-23f : 1 - 0x1p-24f;
      weights.push_back((random() % 2 != 0 ? 1.0f : -1.0f) * scale * 0x1p-24f * near_one);
    } else {  // any other float, denormals, infinities and NaN included
      weights.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    }
  }
  const int n = static_cast<int>(starts.size());
  const PackedMatrix packed = PackedMatrix::pack(weights.data(), 1, n, n, 1, WeightType::f32);
  std::vector<float> expected = starts;
  int differ = 0;
  for (int j = 0; j < n; ++j) {
    const auto i = static_cast<std::size_t>(j);
    expected[i] = std::fma(x, weights[i], starts[i]);
    const auto twice = static_cast<float>(static_cast<double>(x) * weights[i] + starts[i]);
    if (!std::isnan(twice) && twice != expected[i]) ++differ;
  }
  EXPECT_GT(differ, 100);  // the cases are hard ones
  ThreadPool pool;
  on_every_target([&] {
    std::vector<float> out = starts;
    const float* row = &x;
    gemm({.rows = {&row, 1}, .weights = &packed, .start = GemmStart::output, .out = out.data()}, pool);
    EXPECT_TRUE(same_bits(out, expected));
  });
}

TEST_F(GemmTest, Bf16EqualsF32WithRoundedWeights) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(name_of(shape));
    GemmProblem p(shape, WeightType::bf16);
    for (float& w : p.w) {  // nearest, ties to even
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(w);
      const std::uint32_t low = bits & 0xffff, high = bits >> 16;
      w = std::bit_cast<float>((high + (low > 0x8000 || (low == 0x8000 && high % 2 != 0) ? 1 : 0)) << 16);
    }
    const std::vector<float> expected = gemm_chain(p, GemmStart::output);
    on_every_target([&] { EXPECT_TRUE(same_bits(p.run(GemmStart::output), expected)); });
  }
}

TEST_F(GemmTest, Int8IsTheSameOnEveryTargetAndWithinItsQuantizationError) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(name_of(shape));
    const GemmProblem p(shape, WeightType::i8);
    set_cpu_target("").value();
    const std::vector<float> expected = p.run(GemmStart::bias);
    on_every_target([&] { EXPECT_TRUE(same_bits(p.run(GemmStart::bias), expected)); });
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < shape.n; ++j) {
        double sum = p.bias[static_cast<std::size_t>(j)], most_x = 0, most_w = 0, sum_x = 0, sum_w = 0;
        for (int q = 0; q < shape.k; ++q) {
          const double x = p.row_value(i, q), w = p.weight(q, j);
          sum += x * w;
          most_x = std::max(most_x, std::abs(x));
          most_w = std::max(most_w, std::abs(w));
          sum_x += std::abs(x);
          sum_w += std::abs(w);
        }
        // Half a step of each operand, times the other.
        const double bound =
            0.5 * most_x / 511 * (sum_w + shape.k * most_w / 254) + 0.5 * most_w / 127 * sum_x;
        ASSERT_NEAR(expected[static_cast<std::size_t>(i * (shape.n + 3) + j)], sum, bound + 1e-6);
      }
    }
  }
}

TEST_F(GemmTest, Int8IsExactForIntegersThatFit) {
  GemmProblem p({3, 6, 5}, WeightType::i8);
  for (std::size_t i = 0; i < p.x.size(); ++i)
    p.x[i] = static_cast<float>(static_cast<int>(i * 37 % 1023) - 511);
  for (std::size_t i = 0; i < p.w.size(); ++i)
    p.w[i] = static_cast<float>(static_cast<int>(i * 53 % 255) - 127);
  for (int i = 0; i < 3; ++i) p.x[static_cast<std::size_t>(5 * i)] = 511;  // every row's scale is 1
  for (std::size_t j = 0; j < 5; ++j) p.w[j] = -127;                       // and every column's
  p.pack(WeightType::i8);
  const std::vector<float> expected = gemm_chain(p, GemmStart::zero);
  on_every_target([&] { EXPECT_TRUE(same_bits(p.run(GemmStart::zero), expected)); });
}

TEST_F(GemmTest, Int8RoundsHalvesToEven) {
  // Scales of 1 on both sides, one weight of 1: the output is the row's integer.
  const float x[] = {511, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 3.4999998f};
  const float expected[] = {511, 0, 2, 2, 0, -2, 0, 3};
  float w[8 * 8] = {};
  for (int i = 0; i < 8; ++i) w[i * 8 + i] = 127;
  const PackedMatrix packed = PackedMatrix::pack(w, 8, 8, 8, 1, WeightType::i8);
  ThreadPool pool;
  on_every_target([&] {
    const float* row = x;
    float out[8];
    gemm({.rows = {&row, 1}, .weights = &packed, .out = out, .out_stride = 8}, pool);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(out[i], 127 * expected[i]) << x[i];
  });
}

TEST_F(GemmTest, ThreadsChangeNothing) {
  for (const WeightType type : kTypes) {
    for (const GemmShape& shape : {GemmShape{2, 256, 700}, GemmShape{400, 40, 70}, GemmShape{900, 192, 1},
                                   GemmShape{31, 300, 200, 3}}) {
      SCOPED_TRACE(name_of(shape));
      const GemmProblem p(shape, type);
      const std::vector<float> expected = p.run(GemmStart::output);
      EXPECT_TRUE(same_bits(p.run(GemmStart::output, 2), expected));
      EXPECT_TRUE(same_bits(p.run(GemmStart::output, 3), expected));
    }
  }
}

TEST_F(GemmTest, ABatchEqualsEachRowAlone) {
  for (const WeightType type : kTypes) {
    for (const GemmShape& shape :
         {GemmShape{13, 520, 80, 2}, GemmShape{40, 70, 1}, GemmShape{21, 33, 2}, GemmShape{9, 300, 37}}) {
      SCOPED_TRACE(name_of(shape));
      const GemmProblem p(shape, type);
      on_every_target([&] {
        const std::vector<float> batch = p.run(GemmStart::bias);
        ThreadPool pool;
        for (int i = 0; i < shape.m; ++i) {
          std::vector<float> out(static_cast<std::size_t>(shape.n));
          gemm({.rows = {&p.rows[static_cast<std::size_t>(i)], 1},
                .segments = shape.segments,
                .segment_stride = p.segment_stride,
                .weights = &p.packed,
                .start = GemmStart::bias,
                .bias = p.bias.data(),
                .out = out.data()},
               pool);
          const auto row = batch.begin() + i * (shape.n + 3);
          EXPECT_TRUE(same_bits(out, std::vector<float>(row, row + shape.n)));
        }
      });
    }
  }
}

TEST_F(GemmTest, SegmentsThatJoinEqualOneRun) {
  GemmProblem p({7, 24, 20, 4}, WeightType::f32);
  p.segment_stride = p.length;
  const std::vector<float> joined = p.run(GemmStart::zero);
  p.shape.segments = 1;
  p.length = p.segment_stride = 24;
  EXPECT_TRUE(same_bits(p.run(GemmStart::zero), joined));
}

TEST_F(GemmTest, WeightsMayBePackedFromATransposedMatrix) {
  const GemmProblem p({4, 30, 18}, WeightType::f32);
  for (const WeightType type : kTypes) {
    std::vector<float> transposed;
    for (int j = 0; j < 18; ++j) {
      for (int q = 0; q < 30; ++q) transposed.push_back(p.weight(q, j));
    }
    const PackedMatrix a = PackedMatrix::pack(p.w.data(), 30, 18, 18, 1, type);
    const PackedMatrix b = PackedMatrix::pack(transposed.data(), 30, 18, 1, 30, type);
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }
}

// Denormals, infinities and NaN go the way of IEEE arithmetic, on every target alike.
TEST_F(GemmTest, ExtremeValuesPassThrough) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float kValues[] = {0.0f, -0.0f, 1e-45f, -3e-39f,   1e-30f,       1e-38f,
                           2.0f, 3e38f, -3e38f, kInfinity, std::nanf("")};
  for (const GemmShape& shape : {GemmShape{9, 6, 20}, GemmShape{35, 6, 1}}) {
    GemmProblem p(shape, WeightType::f32);
    std::mt19937 random(2);
    for (float& x : p.x) x = kValues[random() % 9];
    for (float& w : p.w) w = kValues[random() % 9];
    const auto check = [&] {
      for (const WeightType type : kTypes) {
        p.pack(type);
        set_cpu_target("").value();
        const std::vector<float> best = p.run(GemmStart::output);
        if (type == WeightType::f32) {
          EXPECT_TRUE(same_bits(best, gemm_chain(p, GemmStart::output)));
        }
        on_every_target([&] { EXPECT_TRUE(same_bits(p.run(GemmStart::output), best)); });
      }
    };
    check();
    for (std::size_t i = 0; i < p.x.size(); i += 7) p.x[i] = kValues[random() % 11];
    p.w[3] = kInfinity;
    check();
  }
}

TEST_F(GemmTest, Int8OfZeroTinyAndInfiniteRows) {
  const float rows[3][4] = {
      {0, 0, 0, 0}, {1e-36f, -1e-36f, 0, 0}, {1, std::numeric_limits<float>::infinity(), 0, 0}};
  const float w[4] = {1, 0.5f, 0, 0};
  const PackedMatrix packed = PackedMatrix::pack(w, 4, 1, 1, 1, WeightType::i8);
  on_every_target([&] {
    const float* pointers[] = {rows[0], rows[1], rows[2]};
    float out[3] = {};
    ThreadPool pool;
    gemm({.rows = pointers, .weights = &packed, .out = out, .out_stride = 1}, pool);
    EXPECT_EQ(out[0], 0.0f);
    EXPECT_NEAR(out[1], 5e-37f, 1e-38f);
    EXPECT_TRUE(std::isnan(out[2]));
  });
}

TEST_F(GemmTest, NoRowsIsNothingToDo) {
  const GemmProblem p({1, 4, 4}, WeightType::f32);
  ThreadPool pool;
  EXPECT_NO_THROW(gemm({.weights = &p.packed}, pool));
}

TEST_F(GemmTest, ImpossibleArgumentsThrow) {
  const GemmProblem p({2, 6, 4}, WeightType::f32);
  float out[8];
  ThreadPool pool;
  const GemmArgs good{.rows = p.rows, .weights = &p.packed, .out = out, .out_stride = 4};
  EXPECT_NO_THROW(gemm(good, pool));
  const auto throws = [&](auto change) {
    GemmArgs bad = good;
    change(bad);
    EXPECT_THROW(gemm(bad, pool), UsageError);
  };
  const PackedMatrix empty;
  const float* with_null[] = {p.rows[0], nullptr};
  throws([](GemmArgs& a) { a.weights = nullptr; });
  throws([&](GemmArgs& a) { a.weights = &empty; });
  throws([](GemmArgs& a) { a.segments = 0; });
  throws([](GemmArgs& a) { a.segments = 4; });
  throws([](GemmArgs& a) { a.start = GemmStart::bias; });
  throws([](GemmArgs& a) { a.out = nullptr; });
  throws([](GemmArgs& a) { a.out_stride = 3; });
  throws([&](GemmArgs& a) { a.rows = with_null; });

  const float w[1] = {1};
  EXPECT_THROW(PackedMatrix::pack(w, 0, 1, 1, 1, WeightType::f32), UsageError);
  EXPECT_THROW(PackedMatrix::pack(w, 1, -1, 1, 1, WeightType::f32), UsageError);
  EXPECT_THROW(PackedMatrix::pack(nullptr, 1, 1, 1, 1, WeightType::f32), UsageError);
  EXPECT_THROW(PackedMatrix::pack(w, 16385, 1, 0, 1, WeightType::i8), UsageError);
}

TEST_F(GemmTest, Int8HoldsTheLongestRows) {
  constexpr int kLongest = 16384;
  const std::vector<float> x(kLongest, -2.0f), w(kLongest, 3.0f);
  const PackedMatrix packed = PackedMatrix::pack(w.data(), kLongest, 1, 1, 1, WeightType::i8);
  on_every_target([&] {
    const std::vector<const float*> rows(9, x.data());
    float out[9];
    ThreadPool pool;
    gemm({.rows = rows, .weights = &packed, .out = out, .out_stride = 1}, pool);
    for (const float value : out) EXPECT_NEAR(value, -6.0f * kLongest, 0.1f);
  });
}

}  // namespace
}  // namespace tessera
