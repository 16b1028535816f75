#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace tessera {
namespace {

TEST(ThreadPool, CallsEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      pool.parallel_for(count, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
      for (const auto& each : calls) EXPECT_EQ(each.load(), 1);
    }
  }
}

TEST(ThreadPool, LoopsFollowOneAnotherWithoutMixing) {
  ThreadPool pool(4);
  std::vector<int> values(64);
  for (int round = 0; round < 2000; ++round) {
    pool.parallel_for(64, [&](int i) { values[static_cast<std::size_t>(i)] += i + round; });
  }
  for (int i = 0; i < 64; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], 2000 * i + 1999 * 1000);
}

TEST(ThreadPool, TakesTheNumberOfCoresForZeroAndRefusesLess) {
  EXPECT_GE(ThreadPool(0).threads(), 1);
  EXPECT_THROW(ThreadPool(-1), UsageError);
}

}  // namespace
}  // namespace tessera
