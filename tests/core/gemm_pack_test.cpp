// Transposed copies and packing at every step, on every instruction set.
#include "core/gemm_pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/aligned_memory.h"
#include "core/error.h"
#include "tests/core/on_every_target.h"

namespace tessera {
namespace {

TEST(GemmPack, TransposesOnEveryTarget) {
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {3, 40}, {4, 4}, {16, 16}, {17, 5}, {33, 20}, {35, 2}, {64, 37}, {2, 300}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const int from_stride = columns + 3, to_stride = rows + 2;
    const std::vector<float> x = test::noise(static_cast<std::size_t>(rows * from_stride), 1);
    std::vector<float> expected(static_cast<std::size_t>(columns * to_stride), 7.0f);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        expected[static_cast<std::size_t>(c * to_stride + r)] =
            x[static_cast<std::size_t>(r * from_stride + c)];
      }
    }
    const auto run = [&, rows = rows, columns = columns] {
      std::vector<float> y(expected.size(), 7.0f);  // what lies between the rows stays
      transpose(x.data(), from_stride, rows, columns, y.data(), to_stride);
      return y;
    };
    test::expect_same_bits(run(), expected, "best target");
    test::expect_same_on_every_target(run);
  }
}

TEST(GemmPack, PacksIntoMemoryWhatPackDoes) {
  struct Sizes {
    int k, n, inner;
  };
  for (const Sizes& s :
       {Sizes{1, 1, 1}, {7, 16, 7}, {96, 33, 32}, {300, 200, 300}, {513, 5, 19}, {60, 64, 4}}) {
    SCOPED_TRACE(std::to_string(s.k) + " x " + std::to_string(s.n));
    const std::vector<float> w = test::noise(static_cast<std::size_t>(2 * s.k * s.n), 2);
    const PackedMatrix::Source sources[] = {
        {w.data(), s.inner, 2 * s.n * s.inner, s.n, 1},         // rows, with gaps between runs
        {w.data(), s.inner, s.inner, 1, s.k},                   // columns
        {w.data() + s.k - s.inner, s.inner, -s.inner, 1, s.k},  // runs in reverse order
        {w.data(), s.k, 0, 2 * s.n, 2},                         // every other element
    };
    for (const PackedMatrix::Source& source : sources) {
      const PackedMatrix expected = PackedMatrix::pack(source, s.k, s.n, WeightType::f32);
      ASSERT_EQ(expected.bytes(), PackedMatrix::floats_of(s.k, s.n) * sizeof(float));
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        test::expect_same_on_every_target([&] {
          const std::size_t floats = PackedMatrix::floats_of(s.k, s.n);
          const auto memory = std::static_pointer_cast<float>(allocate_aligned(floats * sizeof(float)));
          const PackedMatrix packed = PackedMatrix::pack_into(memory.get(), source, s.k, s.n, pool);
          EXPECT_EQ(packed.bytes(), expected.bytes());
          EXPECT_EQ(std::memcmp(packed.data(), expected.data(), expected.bytes()), 0);
          return std::vector<float>(memory.get(), memory.get() + floats);
        });
      }
    }
  }
}

TEST(GemmPack, ImpossibleArgumentsThrow) {
  const float w[4] = {};
  alignas(64) float memory[64];
  ThreadPool pool;
  const PackedMatrix::Source good{w, 2, 0, 2, 1};
  EXPECT_NO_THROW(PackedMatrix::pack_into(memory, good, 2, 2, pool));
  EXPECT_THROW(PackedMatrix::pack_into(nullptr, good, 2, 2, pool), UsageError);
  EXPECT_THROW(PackedMatrix::pack_into(memory, good, 0, 2, pool), UsageError);
  EXPECT_THROW(PackedMatrix::pack_into(memory, good, 3, 2, pool), UsageError);
  EXPECT_THROW(PackedMatrix::pack_into(memory, {nullptr, 2, 0, 2, 1}, 2, 2, pool), UsageError);
}

}  // namespace
}  // namespace tessera
