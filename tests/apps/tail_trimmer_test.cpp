// Any split of the stream gives the same values, cut to the length that is learnt at the end.
#include "apps/tail_trimmer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

namespace tessera::app {
namespace {

struct Trimmed {
  std::vector<float> values;
  std::int64_t count = 0;
};

Trimmed trim(std::size_t length, std::size_t hold, std::size_t chunk, std::optional<std::int64_t> total) {
  std::vector<float> input(length);
  std::iota(input.begin(), input.end(), 1.0f);
  Trimmed result;
  const auto collect = [&](std::span<const float> values) {
    EXPECT_FALSE(values.empty());
    result.values.insert(result.values.end(), values.begin(), values.end());
  };
  TailTrimmer trimmer(hold);
  for (std::size_t at = 0; at < length; at += chunk) {
    trimmer.push(std::span(input).subspan(at, std::min(chunk, length - at)), collect);
    EXPECT_EQ(result.values.size(),
              std::min(at + chunk, length) > hold ? std::min(at + chunk, length) - hold : 0);
  }
  result.count = trimmer.finish(total, collect);
  return result;
}

void expect_first(const Trimmed& trimmed, std::size_t count) {
  EXPECT_EQ(trimmed.count, static_cast<std::int64_t>(count));
  ASSERT_EQ(trimmed.values.size(), count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(trimmed.values[i], static_cast<float>(i + 1));
}

TEST(TailTrimmer, CutsToTheLengthWhateverTheSplit) {
  for (const std::size_t chunk : {1, 3, 7, 10, 64, 100}) {
    for (const int total : {100, 99, 93, 90})
      expect_first(trim(100, 10, chunk, total), static_cast<std::size_t>(total));
  }
}

TEST(TailTrimmer, WithoutALengthEverythingComesOut) {
  expect_first(trim(100, 10, 7, std::nullopt), 100);
  expect_first(trim(5, 10, 2, std::nullopt), 5);
  expect_first(trim(0, 10, 2, std::nullopt), 0);
}

TEST(TailTrimmer, ShortStreamsAreHeldWhole) {
  expect_first(trim(8, 10, 3, 0), 0);
  expect_first(trim(8, 10, 3, 5), 5);
}

TEST(TailTrimmer, SaysWhenTheLengthCannotBeKept) {
  expect_first(trim(100, 10, 7, 50), 90);    // 90 are gone already
  expect_first(trim(100, 10, 7, 500), 100);  // there are no more
}

TEST(TailTrimmer, HoldsNothingWhenNothingIsToBeCut) {
  expect_first(trim(20, 0, 3, 20), 20);
}

}  // namespace
}  // namespace tessera::app
