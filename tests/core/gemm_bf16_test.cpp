// The bf16 product against the chain of multiply-adds of its instruction, over shapes, layouts of rows,
// starts and thread counts. Skips where the CPU has no such instruction, apart from what must hold there.
#include "core/gemm_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/aligned_memory.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/tensor.h"
#include "tests/core/gemm_problem.h"

namespace tessera {
namespace {

using namespace gemm_testing;

// Tiles and remainders of every height and width, partly filled panels, blocks of k, odd segments.
const GemmShape kShapes[] = {
    {1, 1, 1},         {1, 7, 16},        {2, 32, 48},       {3, 5, 17},  {4, 64, 1},       {5, 9, 130, 3},
    {6, 16, 64},       {7, 33, 31},       {8, 300, 70, 2},   {9, 4, 64},  {13, 520, 80, 2}, {11, 15, 32, 5},
    {17, 258, 20},     {26, 2100, 65, 4}, {70, 24, 1, 8},    {395, 3, 5}, {10, 514, 33, 2}, {12, 1040, 16},
    {40, 12, 100, 12}, {19, 771, 35, 3},  {200, 1536, 40, 1}};

struct Bf16Problem {
  explicit Bf16Problem(const GemmShape& shape) : p(shape, WeightType::f32) {
    rounded.resize(p.x.size());
    round_to_bf16(p.x.data(), p.x.size(), rounded.data());
    for (const float* row : p.rows) rows.push_back(rounded.data() + (row - p.x.data()));
    pack({p.w.data(), shape.k, 0, shape.n, 1});
  }

  void pack(const PackedMatrix::Source& source, int threads = 1) {
    const GemmShape& s = p.shape;
    const std::size_t elements = Bf16Matrix::elements_of(s.k, s.n, s.segments);
    memory = std::static_pointer_cast<std::uint16_t>(allocate_aligned(elements * sizeof(std::uint16_t)));
    ThreadPool pool(threads);
    packed = Bf16Matrix::pack_into(memory.get(), source, s.k, s.n, s.segments, pool);
  }

  std::vector<float> run(GemmStart start, int threads = 1) const {
    std::vector<float> out = p.before;
    ThreadPool pool(threads);
    Bf16GemmArgs args = arguments(out.data());
    args.start = start;
    gemm_bf16(args, pool);
    return out;
  }

  Bf16GemmArgs arguments(float* out) const {
    Bf16GemmArgs args;
    args.rows = rows;
    args.segments = p.shape.segments;
    args.segment_stride = p.segment_stride;
    args.weights = &packed;
    args.bias = p.bias.data();
    args.out = out;
    args.out_stride = p.shape.n + 3;
    return args;
  }

  // What the instruction is documented to do: of each pair, the second product is added first; an odd end is
  // a pair with zero.
  std::vector<float> chain(GemmStart start) const {
    std::vector<float> out = p.before;
    for (int i = 0; i < p.shape.m; ++i) {
      for (int j = 0; j < p.shape.n; ++j) {
        float sum = p.start_value(start, i, j);
        const auto add = [&](int q) {
          sum = std::fma(bf16_to_f32(f32_to_bf16(p.row_value(i, q))),
                         bf16_to_f32(f32_to_bf16(p.weight(q, j))), sum);
        };
        for (int s = 0; s < p.shape.segments; ++s) {
          for (int q = s * p.length; q < (s + 1) * p.length; q += 2) {
            if (q + 1 < (s + 1) * p.length) add(q + 1);
            add(q);
          }
        }
        out[static_cast<std::size_t>(i) * static_cast<std::size_t>(p.shape.n + 3) + j] = sum;
      }
    }
    return out;
  }

  GemmProblem p;
  std::vector<std::uint16_t> rounded;
  std::vector<const std::uint16_t*> rows;
  std::shared_ptr<std::uint16_t> memory;
  Bf16Matrix packed;
};

class GemmBf16Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_bf16_products()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  }
};

TEST_F(GemmBf16Test, IsOneChainOverPairs) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(name_of(shape));
    const Bf16Problem problem(shape);
    for (const GemmStart start : {GemmStart::zero, GemmStart::bias, GemmStart::output}) {
      EXPECT_TRUE(same_bits(problem.run(start), problem.chain(start)));
    }
  }
}

TEST_F(GemmBf16Test, AgreesWithADoublePrecisionProductOfRoundedOperands) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(name_of(shape));
    const Bf16Problem problem(shape);
    const std::vector<float> out = problem.run(GemmStart::zero);
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < shape.n; ++j) {
        double sum = 0, size = 0;
        for (int q = 0; q < shape.k; ++q) {
          const double x = bf16_to_f32(f32_to_bf16(problem.p.row_value(i, q)));
          sum += x * bf16_to_f32(f32_to_bf16(problem.p.weight(q, j)));
          size += std::abs(x);
        }
        ASSERT_NEAR(out[static_cast<std::size_t>(i * (shape.n + 3) + j)], sum, 1e-6 * size + 1e-6);
      }
    }
  }
}

TEST_F(GemmBf16Test, ThreadsChangeNothing) {
  for (const GemmShape& shape :
       {GemmShape{2, 256, 700}, GemmShape{400, 40, 70}, GemmShape{31, 303, 200, 3}}) {
    SCOPED_TRACE(name_of(shape));
    const Bf16Problem problem(shape);
    const std::vector<float> expected = problem.run(GemmStart::output);
    EXPECT_TRUE(same_bits(problem.run(GemmStart::output, 2), expected));
    EXPECT_TRUE(same_bits(problem.run(GemmStart::output, 3), expected));
  }
}

TEST_F(GemmBf16Test, ABatchEqualsEachRowAlone) {
  for (const GemmShape& shape : {GemmShape{13, 520, 80, 2}, GemmShape{21, 33, 2}, GemmShape{9, 301, 37}}) {
    SCOPED_TRACE(name_of(shape));
    const Bf16Problem problem(shape);
    const std::vector<float> batch = problem.run(GemmStart::bias);
    ThreadPool pool;
    for (int i = 0; i < shape.m; ++i) {
      std::vector<float> out(static_cast<std::size_t>(shape.n));
      Bf16GemmArgs args = problem.arguments(out.data());
      args.rows = args.rows.subspan(static_cast<std::size_t>(i), 1);
      args.start = GemmStart::bias;
      gemm_bf16(args, pool);
      const auto row = batch.begin() + i * (shape.n + 3);
      EXPECT_TRUE(same_bits(out, std::vector<float>(row, row + shape.n)));
    }
  }
}

TEST_F(GemmBf16Test, WeightsMayBePackedFromATransposedMatrix) {
  Bf16Problem problem({14, 90, 150, 2});
  const GemmProblem& p = problem.p;
  const std::vector<float> expected = problem.run(GemmStart::bias);
  std::vector<float> transposed;
  for (int j = 0; j < p.shape.n; ++j) {
    for (int q = 0; q < p.shape.k; ++q) transposed.push_back(p.weight(q, j));
  }
  problem.pack({transposed.data(), p.shape.k, 0, 1, p.shape.k}, 2);
  EXPECT_TRUE(same_bits(problem.run(GemmStart::bias), expected));
  problem.pack({transposed.data(), 10, 10, 1, p.shape.k}, 3);
  EXPECT_TRUE(same_bits(problem.run(GemmStart::bias), expected));
}

TEST_F(GemmBf16Test, RoundsToNearestEven) {
  std::vector<float> x;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, -0.0f, 1.0f, -3e38f, 3.4e38f, kInfinity, -kInfinity, std::nanf("")})
    x.push_back(value);
  std::mt19937 random(5);
  while (x.size() < 20000) {  // halfway cases among them
    const std::uint32_t bits = static_cast<std::uint32_t>(random()) & (random() % 2 != 0 ? 0xffff8000u : ~0u);
    x.push_back(std::bit_cast<float>(bits));
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{15}, std::size_t{49}, x.size()}) {
    std::vector<std::uint16_t> y(count + 1, 0x7777);
    round_to_bf16(x.data(), count, y.data());
    EXPECT_EQ(y[count], 0x7777);
    for (std::size_t i = 0; i < count; ++i) {
      const bool denormal = std::fpclassify(x[i]) == FP_SUBNORMAL;
      const std::uint16_t expected = denormal ? std::signbit(x[i]) ? 0x8000 : 0 : f32_to_bf16(x[i]);
      ASSERT_EQ(y[i], expected) << x[i];
    }
  }
}

TEST_F(GemmBf16Test, ImpossibleArgumentsThrow) {
  const Bf16Problem problem({2, 6, 4, 2});
  float out[8];
  ThreadPool pool;
  Bf16GemmArgs good = problem.arguments(out);
  good.out_stride = 4;
  EXPECT_NO_THROW(gemm_bf16(good, pool));
  const auto throws = [&](auto change) {
    Bf16GemmArgs bad = good;
    change(bad);
    EXPECT_THROW(gemm_bf16(bad, pool), UsageError);
  };
  const Bf16Matrix empty;
  const std::uint16_t* with_null[] = {problem.rows[0], nullptr};
  throws([](Bf16GemmArgs& a) { a.weights = nullptr; });
  throws([&](Bf16GemmArgs& a) { a.weights = &empty; });
  throws([](Bf16GemmArgs& a) { a.segments = 1; });
  throws([](Bf16GemmArgs& a) { a.start = GemmStart::bias, a.bias = nullptr; });
  throws([](Bf16GemmArgs& a) { a.out = nullptr; });
  throws([](Bf16GemmArgs& a) { a.out_stride = 3; });
  throws([&](Bf16GemmArgs& a) { a.rows = with_null; });
  good.rows = {};
  EXPECT_NO_THROW(gemm_bf16(good, pool));

  const float w[8] = {};
  alignas(64) std::uint16_t memory[256];
  const PackedMatrix::Source source{w, 2, 0, 1, 1};
  EXPECT_THROW(Bf16Matrix::pack_into(memory, source, 0, 1, 1, pool), UsageError);
  EXPECT_THROW(Bf16Matrix::pack_into(memory, source, 2, 0, 1, pool), UsageError);
  EXPECT_THROW(Bf16Matrix::pack_into(memory, source, 3, 1, 1, pool), UsageError);
  EXPECT_THROW(Bf16Matrix::pack_into(memory, source, 4, 1, 3, pool), UsageError);
  EXPECT_THROW(Bf16Matrix::pack_into(nullptr, source, 2, 1, 1, pool), UsageError);
}

TEST(GemmBf16, IsAbsentOnOlderInstructionSets) {
  set_cpu_target("scalar").value();
  EXPECT_FALSE(has_bf16_products());
  ThreadPool pool;
  EXPECT_THROW(gemm_bf16({}, pool), UsageError);
  set_cpu_target("").value();
}

}  // namespace
}  // namespace tessera
