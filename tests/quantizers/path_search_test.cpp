// Search along several paths against a plain beam search in double, and what it promises.
#include "quantizers/path_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu.h"
#include "core/error.h"
#include "quantizers/residual_vq.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<std::int32_t>;

constexpr std::size_t kLevels = 5, kSize = 40, kDimension = 10, kRows = 75;

Floats codewords(std::size_t level) {
  return random_floats(kSize * kDimension, level + 1, std::pow(0.8f, static_cast<float>(level)));
}

ResidualVq quantizer(int paths) {
  std::vector<Codebook> codebooks;
  for (std::size_t i = 0; i < kLevels; ++i) {
    codebooks.emplace_back(codewords(i), static_cast<int>(kSize), static_cast<int>(kDimension),
                           WeightType::f32);
  }
  return ResidualVq(std::move(codebooks), paths);
}

Floats latents() {
  return random_floats(kRows * kDimension, 77, 1.5f);
}

// On a workspace of exactly the size that the quantizer asks for.
Tokens encode(const ResidualVq& vq, const Floats& rows, std::size_t count = kLevels, int threads = 1) {
  const int number = static_cast<int>(rows.size() / kDimension);
  Tokens tokens(rows.size() / kDimension * count);
  ThreadPool pool(threads);
  Workspace workspace(vq.workspace_bytes(number));
  StepContext context{workspace, pool};
  vq.encode(rows.data(), number, static_cast<int>(count), tokens.data(), context);
  EXPECT_EQ(workspace.mark().low, 0u);
  return tokens;
}

// Squared distance of a latent from the sum of the codewords of its tokens.
double error_of(const float* latent, const std::int32_t* tokens, std::size_t count) {
  std::vector<double> left(latent, latent + kDimension);
  for (std::size_t i = 0; i < count; ++i) {
    const Floats book = codewords(i);
    for (std::size_t d = 0; d < kDimension; ++d)
      left[d] -= static_cast<double>(book[static_cast<std::size_t>(tokens[i]) * kDimension + d]);
  }
  double sum = 0;
  for (const double value : left) sum += value * value;
  return sum;
}

double mean_error(int paths) {
  const Floats rows = latents();
  const Tokens tokens = encode(quantizer(paths), rows);
  double sum = 0;
  for (std::size_t row = 0; row < kRows; ++row)
    sum += error_of(rows.data() + row * kDimension, tokens.data() + row * kLevels, kLevels);
  return sum / static_cast<double>(kRows);
}

// The definition: all continuations of the paths, sorted by distance; the first codebook keeps one.
Tokens plain_search(const float* latent, std::size_t count, std::size_t paths) {
  std::vector<Tokens> live = {{}};
  for (std::size_t level = 0; level < count; ++level) {
    std::vector<std::pair<double, Tokens>> next;
    for (const Tokens& path : live) {
      for (std::size_t c = 0; c < kSize; ++c) {
        Tokens longer = path;
        longer.push_back(static_cast<std::int32_t>(c));
        next.emplace_back(error_of(latent, longer.data(), level + 1), longer);
      }
    }
    std::ranges::sort(next, {}, [](const auto& item) { return item.first; });
    next.resize(level == 0 ? 1 : std::min(paths, next.size()));
    live.clear();
    for (auto& item : next) live.push_back(std::move(item.second));
  }
  return live.front();
}

TEST(PathSearch, KeepsTheNearestSums) {
  const Floats rows = latents();
  for (const int paths : {2, 5, 64}) {  // 64: more than there are after the second codebook
    const ResidualVq vq = quantizer(paths);
    for (const std::size_t count : {1UL, 2UL, 4UL}) {
      const Tokens tokens = encode(vq, rows, count);
      for (std::size_t row = 0; row < 12; ++row) {
        const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(row * count);
        EXPECT_EQ(Tokens(at, at + static_cast<std::ptrdiff_t>(count)),
                  plain_search(rows.data() + row * kDimension, count, static_cast<std::size_t>(paths)))
            << paths << " paths, " << count << " codebooks, row " << row;
      }
    }
  }
}

TEST(PathSearch, MorePathsComeNearer) {
  const double one = mean_error(1), two = mean_error(2), eight = mean_error(8);
  EXPECT_LT(two, 0.95 * one);
  EXPECT_LT(eight, 0.95 * two);
}

TEST(PathSearch, FirstTokenDoesNotDependOnTheOthers) {
  const Floats rows = latents();
  const Tokens all = encode(quantizer(8), rows), nearest = encode(quantizer(1), rows);
  std::size_t others = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(all[row * kLevels], nearest[row * kLevels]);
    others += all[row * kLevels + 1] != nearest[row * kLevels + 1];
  }
  EXPECT_GT(others, kRows / 10);
}

TEST(PathSearch, RowsDoNotDependOnOneAnotherAndBitsOnNothing) {
  const ResidualVq vq = quantizer(4);
  const Floats rows = latents();
  const Tokens tokens = encode(vq, rows);
  for (std::size_t row = 0; row < kRows; ++row) {
    const float* latent = rows.data() + row * kDimension;
    const Tokens alone = encode(vq, Floats(latent, latent + kDimension));
    ASSERT_TRUE(std::ranges::equal(alone, std::span(tokens).subspan(row * kLevels, kLevels))) << row;
  }
  EXPECT_EQ(encode(vq, rows, kLevels, 3), tokens);
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target));
    EXPECT_EQ(encode(vq, rows), tokens) << target;
    ASSERT_TRUE(set_cpu_target(""));
  }
}

TEST(PathSearch, RefusesWhatCannotBe) {
  EXPECT_THROW(quantizer(0), UsageError);
  EXPECT_THROW(quantizer(kMaxSearchPaths + 1), UsageError);
  EXPECT_THROW(encode(quantizer(2), latents(), 0), UsageError);
  EXPECT_THROW(encode(quantizer(2), latents(), kLevels + 1), UsageError);
}

}  // namespace
}  // namespace tessera::test
