// The moving averages of a codebook against numbers worked out by hand, and what goes wrong in many
// implementations: codewords that were replaced and fall back, statistics of one rank only.
#include "quantizers/codebook_learning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;
using Indices = std::vector<std::int32_t>;

Floats codewords_of(const CodebookLearner& learner) {
  return {learner.codewords().begin(), learner.codewords().end()};
}

Floats state_of(const CodebookLearner& learner) {
  Floats all;
  for (const auto& [name, tensor] : learner.save())
    all.insert(all.end(), tensor.f32(), tensor.f32() + tensor.size());
  return all;
}

Floats collect(const CodebookLearner& learner, const Floats& rows, const Indices& indices, int threads = 1) {
  ThreadPool pool(threads);
  Floats statistics(learner.statistics_size());
  learner.collect(rows.data(), indices, statistics, pool);
  return statistics;
}

void update(CodebookLearner& learner, const Floats& statistics, std::uint64_t step = 0, int threads = 1) {
  ThreadPool pool(threads);
  const Result<void> result = learner.update(statistics, step, pool);
  ASSERT_TRUE(result) << result.error().message;
}

TEST(CodebookLearner, AveragesByHand) {
  CodebookLearner learner({.size = 2, .dimension = 2, .decay = 0.5f, .epsilon = 0.25f, .dead_below = 0.0f});
  learner.start(Floats{0, 0, 4, 4});  // N = 1 1, m = the codewords
  const Floats statistics = collect(learner, {1, 0, 9, 9, 3, 0, 6, 4}, {0, -1, 0, 1});
  EXPECT_EQ(statistics, (Floats{2, 1, 4, 0, 6, 4}));
  update(learner, statistics);
  // N = 1.5 1, m = (2 0) (5 4); the sizes smoothed: (N + 1/4) 2.5 / (2.5 + 2/4) = 35/24 25/24.
  const Floats want = {2.0f * 24 / 35, 0, 5.0f * 24 / 25, 4.0f * 24 / 25};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(learner.codewords()[i], want[i], 1e-6f);
  update(learner, collect(learner, {4, 8}, {1}));
  // N = 0.75 1, m = (1 0) (4.5 6); smoothed: 1 and 1.25, times 1.75 / 2.25.
  const Floats then = {1.0f * 9 / 7, 0, 4.5f * 9 / 7 / 1.25f, 6.0f * 9 / 7 / 1.25f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(learner.codewords()[i], then[i], 1e-6f);
}

TEST(CodebookLearner, FollowsItsRows) {
  CodebookLearner learner({.size = 2, .dimension = 1, .decay = 0.9f});
  learner.start(Floats{-1, 1});
  for (int i = 0; i < 100; ++i) update(learner, collect(learner, {-5, -7, 2, 4, 3}, {0, 0, 1, 1, 1}));
  EXPECT_NEAR(learner.codewords()[0], -6.0f, 1e-2f);
  EXPECT_NEAR(learner.codewords()[1], 3.0f, 1e-2f);
}

// Four codewords, the last of which gets no rows any more, until it is put beside the first, the most used.
CodebookLearner with_replaced_codeword() {
  CodebookLearner learner({.size = 4, .dimension = 2, .decay = 0.5f, .dead_below = 0.1f});
  learner.start(Floats{1, 1, -1, 1, 1, -1, -1, -1});
  const Floats rows = {1, 1, -1, 1, 1, -1, 1, 1};
  for (int step = 0; step < 20; ++step) {
    update(learner, collect(learner, rows, {0, 1, 2, 0}), static_cast<std::uint64_t>(step));
    if (learner.codewords()[6] > 0.0f) return learner;
  }
  ADD_FAILURE() << "the dead codeword was never replaced";
  return learner;
}

TEST(CodebookLearner, ReplacedCodewordStaysWithoutRows) {
  CodebookLearner learner = with_replaced_codeword();
  // Its averages are half of those of the codeword that was split, all at the new place.
  const float* sizes = learner.save()[1].second.f32();
  const float* sums = learner.save()[2].second.f32();
  EXPECT_EQ(sizes[3], sizes[0]);
  for (const std::size_t d : {6UL, 7UL}) {
    EXPECT_FLOAT_EQ(sums[d], learner.codewords()[d] * sizes[3]);
    EXPECT_NEAR(learner.codewords()[d], 1.0f, 0.05f);
    EXPECT_NE(learner.codewords()[d], learner.codewords()[d - 6]);
  }
  const Floats before = codewords_of(learner);
  update(learner, collect(learner, {1, 1, -1, 1, 1, -1}, {0, 1, 2}));
  EXPECT_NEAR(learner.codewords()[6], before[6], 1e-3f);
  EXPECT_NEAR(learner.codewords()[7], before[7], 1e-3f);
}

TEST(CodebookLearner, ReplacedCodewordMovesLittleByFewRows) {
  CodebookLearner learner = with_replaced_codeword();
  // One row of its own in thirty: an old, tiny size would let it take the codeword nearly all the way.
  Floats rows = {5, 1};
  Indices indices = {3};
  for (int i = 0; i < 29; ++i) {
    rows.insert(rows.end(), {1, 1});
    indices.push_back(0);
  }
  const float size = learner.save()[1].second.f32()[3];
  const Floats before = codewords_of(learner);
  update(learner, collect(learner, rows, indices));
  EXPECT_NEAR(learner.codewords()[6], (before[6] * size + 5) / (size + 1), 0.01f);
  EXPECT_LT(learner.codewords()[6], 4.0f);
  EXPECT_NEAR(learner.codewords()[7], 1.0f, 0.05f);
}

TEST(CodebookLearner, CodewordsThatAreUsedAreNotReplaced) {
  CodebookLearner learner({.size = 4, .dimension = 1, .decay = 0.9f, .dead_below = 0.1f});
  learner.start(Floats{0, 1, 2, 3});
  // The last one gets 1 of 20 rows, a fifth of its share.
  Floats rows(20, 0.0f);
  Indices indices(20);
  for (int i = 0; i < 20; ++i) {
    indices[static_cast<std::size_t>(i)] = i == 0 ? 3 : i % 3;
    rows[static_cast<std::size_t>(i)] = static_cast<float>(i == 0 ? 3 : i % 3);
  }
  for (std::uint64_t step = 0; step < 200; ++step) update(learner, collect(learner, rows, indices), step);
  for (int c = 0; c < 4; ++c)
    EXPECT_NEAR(learner.codewords()[static_cast<std::size_t>(c)], static_cast<float>(c), 0.01f);
}

TEST(CodebookLearner, TheMostUsedSplit) {
  const auto after = [](float dead_below, std::uint64_t seed, std::uint64_t step) {
    CodebookLearner learner({.size = 6, .dimension = 2, .decay = 0, .dead_below = dead_below, .seed = seed});
    learner.start(Floats(12, -7.0f));
    // 6, 4 and 2 rows: the mean of all codewords is 2. The other three die at once.
    update(learner,
           collect(learner, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 5, 6, 5, 6},
                   {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2}),
           step);
    return state_of(learner);
  };
  const Floats state = after(0.5f, 1, 1);  // codewords, then sizes
  EXPECT_EQ(Floats(state.begin() + 12, state.begin() + 18), (Floats{3, 2, 1, 3, 2, 1}));
  for (std::size_t i = 0; i < 6; ++i) {
    const float middle = static_cast<float>(i + 1), one = state[i], other = state[i + 6];
    EXPECT_NEAR((one + other) / 2, middle, 1e-3f);
    EXPECT_NE(one, other);
    EXPECT_NEAR(one, middle, 0.4f);
  }
  const Floats fewer = after(0.6f, 1, 1);  // halves of the third would be dead
  EXPECT_EQ(Floats(fewer.begin() + 12, fewer.begin() + 18), (Floats{3, 2, 2, 3, 2, 0}));
  EXPECT_EQ(after(0.5f, 1, 1), state);
  EXPECT_NE(after(0.5f, 1, 2), state);
  EXPECT_NE(after(0.5f, 2, 1), state);
  EXPECT_EQ(after(0, 1, 1)[15], 0);  // none is replaced
}

TEST(CodebookLearner, RanksTogetherAreOneRankWithAllRows) {
  const CodebookOptions options{.size = 4, .dimension = 2, .decay = 0.75f, .dead_below = 0.3f};
  CodebookLearner whole(options), rank0(options), rank1(options);
  // Multiples of 1/16: sums are exact in any order.
  const Floats rows = {1, 0.5f, -1, 0.25f, 2, 2, 0.125f, -3, 1.0625f, 0, 3, 3};
  const Indices indices = {0, 1, 2, 1, 0, 2};
  for (std::uint64_t step = 0; step < 12; ++step) {
    const Floats all = collect(whole, rows, indices);
    Floats sum = collect(rank0, {rows.begin(), rows.begin() + 4}, {0, 1});
    const Floats other = collect(rank1, {rows.begin() + 4, rows.end()}, {2, 1, 0, 2});
    EXPECT_NE(sum, all);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    update(whole, all, step);
    update(rank0, sum, step);
    update(rank1, sum, step);
  }
  EXPECT_EQ(state_of(rank0), state_of(whole));
  EXPECT_EQ(state_of(rank1), state_of(whole));
}

TEST(CodebookLearner, StartsFromKMeans) {
  Floats rows = random_floats(400, 3, 0.1f);
  for (std::size_t i = 0; i < 400; ++i) rows[i] += static_cast<float>(i % 4) * 5.0f;
  CodebookLearner learner({.size = 4, .dimension = 1});
  ThreadPool pool(1);
  learner.start(rows.data(), 400, {}, pool);
  Floats words = codewords_of(learner);
  std::sort(words.begin(), words.end());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(words[i], 5.0f * static_cast<float>(i), 0.1f);
  EXPECT_THROW(learner.start(rows.data(), 3, {}, pool), UsageError);
  EXPECT_THROW(learner.start(Floats{1, 2}), UsageError);
}

TEST(CodebookLearner, SameBitsForAnyNumberOfThreadsAndAfterARestore) {
  const CodebookOptions options{.size = 100, .dimension = 9, .dead_below = 0.5f, .seed = 3};
  const Floats rows = random_floats(300 * 9, 1);
  const auto steps = [&](CodebookLearner& learner, int from, int to, int threads) {
    ThreadPool pool(threads);
    Indices indices(300);
    for (int step = from; step < to; ++step) {
      nearest_rows(Codebook(learner.codewords(), 100, 9, WeightType::f32), rows.data(), 300, indices.data(),
                   pool);
      const Floats statistics = collect(learner, rows, indices, threads);
      update(learner, statistics, static_cast<std::uint64_t>(step), threads);
    }
  };
  CodebookLearner one(options), three(options), resumed(options);
  steps(three, 0, 20, 3);
  steps(one, 0, 10, 1);
  const auto from = one.save();
  auto to = resumed.save();
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(from[i].first, to[i].first);
    std::memcpy(to[i].second.raw(), from[i].second.raw(), from[i].second.bytes());
  }
  steps(one, 10, 20, 1);
  steps(resumed, 10, 20, 1);
  EXPECT_EQ(state_of(three), state_of(one));
  EXPECT_EQ(state_of(resumed), state_of(one));
}

TEST(CodebookLearner, BadInput) {
  CodebookLearner learner({.size = 3, .dimension = 2});
  const Floats before = state_of(learner);
  update(learner, Floats(learner.statistics_size()));  // no rows
  EXPECT_EQ(state_of(learner), before);
  ThreadPool pool(1);
  Floats statistics = collect(learner, {1, 2, 3, std::numeric_limits<float>::quiet_NaN()}, {0, 1});
  const Result<void> result = learner.update(statistics, 12, pool);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::damaged);
  EXPECT_EQ(result.error().message, "codebook update, step 12: expected finite latents, got NaN or infinity");
  EXPECT_EQ(state_of(learner), before);

  EXPECT_THROW((void)learner.update(Floats(4), 0, pool), UsageError);
  EXPECT_THROW(collect(learner, {1, 2}, {3}), UsageError);
  EXPECT_THROW(CodebookLearner({.size = 0, .dimension = 2}), UsageError);
  EXPECT_THROW(CodebookLearner({.size = 2, .dimension = 2, .decay = 1.0f}), UsageError);
  EXPECT_THROW(CodebookLearner({.size = 2, .dimension = 2, .epsilon = -1.0f}), UsageError);
}

TEST(CodebookUsage, PerplexityAndUnusedCodewords) {
  CodebookUsage usage(64);
  EXPECT_EQ(usage.perplexity(), 0);
  EXPECT_EQ(usage.unused(), 64);
  usage.add(Floats(64, 5.0f));
  EXPECT_NEAR(usage.perplexity(), 64, 1e-9);
  EXPECT_EQ(usage.unused(), 0);
  usage.reset();
  Floats counts(64);
  counts[7] = 100;
  usage.add(counts);
  EXPECT_NEAR(usage.perplexity(), 1, 1e-12);
  EXPECT_EQ(usage.unused(), 63);
  counts[7] = 0;
  counts[9] = 300;  // over the window: 1/4 and 3/4
  usage.add(counts);
  EXPECT_NEAR(usage.perplexity(), std::exp(0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3)), 1e-12);
  EXPECT_EQ(usage.unused(), 62);
  EXPECT_THROW(usage.add(Floats(63)), UsageError);
}

}  // namespace
}  // namespace tessera::test
