// The vector quantizers against plain double-precision searches, and the contracts of a stateless row-wise
// map.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "core/cpu.h"
#include "core/error.h"
#include "quantizers/factorized_vq.h"
#include "quantizers/fsq.h"
#include "quantizers/residual_vq.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<std::int32_t>;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// Runs a quantizer on a workspace of exactly the size that it asks for.
template <class Run>
void with_context(const Quantizer& quantizer, int rows, int threads, const Run& run) {
  ThreadPool pool(threads);
  Workspace workspace(quantizer.workspace_bytes(rows));
  StepContext context{workspace, pool};
  run(context);
  EXPECT_EQ(workspace.mark().low, 0u);
}

Tokens encode(const Quantizer& quantizer, const Floats& latents, int count, int threads = 1) {
  const int rows = static_cast<int>(latents.size()) / quantizer.dimension();
  Tokens tokens(to_size(rows * count));
  with_context(quantizer, rows, threads, [&](StepContext& context) {
    quantizer.encode(latents.data(), rows, count, tokens.data(), context);
  });
  return tokens;
}

Floats decode(const Quantizer& quantizer, const Tokens& tokens, int count) {
  const int rows = static_cast<int>(tokens.size()) / count;
  Floats latents(to_size(rows * quantizer.dimension()), 99.0f);
  with_context(quantizer, rows, 1, [&](StepContext& context) {
    quantizer.decode(tokens.data(), rows, count, latents.data(), context);
  });
  return latents;
}

// Index of the codeword nearest to `row`, and how much nearer it is than any other.
struct Nearest {
  int index = 0;
  double margin = std::numeric_limits<double>::infinity();
};

Nearest nearest(std::span<const double> row, std::span<const double> codewords) {
  Nearest found;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j * row.size() < codewords.size(); ++j) {
    double distance = 0;
    for (std::size_t d = 0; d < row.size(); ++d)
      distance += std::pow(row[d] - codewords[j * row.size() + d], 2);
    if (distance < best) {
      found = {static_cast<int>(j), best - distance};
      best = distance;
    } else {
      found.margin = std::min(found.margin, distance - best);
    }
  }
  return found;
}

std::vector<double> doubles(const Floats& values) {
  return {values.begin(), values.end()};
}

struct PlainRvq {
  std::vector<Floats> codebooks;
  int dimension;

  // Tokens of a latent; stops where two codewords are too close to call in single precision.
  Tokens encode(std::vector<double> residual) const {
    Tokens tokens;
    for (const Floats& codebook : codebooks) {
      const Nearest found = nearest(residual, doubles(codebook));
      if (found.margin < 1e-4) break;
      tokens.push_back(found.index);
      for (int d = 0; d < dimension; ++d)
        residual[to_size(d)] -= codebook[to_size(found.index * dimension + d)];
    }
    return tokens;
  }
};

PlainRvq random_rvq(int count, int size, int dimension, std::uint64_t seed) {
  PlainRvq plain{{}, dimension};
  for (int i = 0; i < count; ++i) {
    plain.codebooks.push_back(random_floats(to_size(size * dimension), seed + static_cast<std::uint64_t>(i),
                                            std::pow(0.7f, static_cast<float>(i))));
  }
  return plain;
}

ResidualVq pack(const PlainRvq& plain) {
  std::vector<Codebook> codebooks;
  for (const Floats& codewords : plain.codebooks) {
    codebooks.emplace_back(codewords, static_cast<int>(codewords.size()) / plain.dimension, plain.dimension,
                           WeightType::f32);
  }
  return ResidualVq(std::move(codebooks));
}

// What every quantizer promises: prefixes, rows independent of one another, the same bits everywhere.
void expect_contracts(const Quantizer& quantizer, const Floats& latents) {
  const int all = quantizer.codebooks(), dimension = quantizer.dimension(),
            rows = static_cast<int>(latents.size()) / dimension;
  const Tokens tokens = encode(quantizer, latents, all);
  for (int count = 1; count <= all; ++count) {
    const Tokens prefix = encode(quantizer, latents, count);
    for (std::size_t i = 0; i < prefix.size(); ++i)
      ASSERT_EQ(prefix[i], tokens[i / to_size(count) * to_size(all) + i % to_size(count)]);
  }
  const Floats decoded = decode(quantizer, tokens, all);
  for (int row = 0; row < rows; ++row) {
    const auto at = latents.begin() + row * dimension;
    const Tokens alone = encode(quantizer, Floats(at, at + dimension), all);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), tokens.begin() + row * all)) << row;
    ASSERT_EQ(decode(quantizer, alone, all),
              Floats(decoded.begin() + row * dimension, decoded.begin() + (row + 1) * dimension));
  }
  EXPECT_EQ(encode(quantizer, latents, all, 3), tokens);
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target));
    EXPECT_EQ(encode(quantizer, latents, all), tokens) << target;
    EXPECT_EQ(decode(quantizer, tokens, all), decoded) << target;
    ASSERT_TRUE(set_cpu_target(""));
  }
  EXPECT_THROW(encode(quantizer, latents, all + 1), UsageError);
  EXPECT_THROW(encode(quantizer, latents, 0), UsageError);
}

TEST(ResidualVq, FindsTheNearestOfEachResidual) {
  constexpr int kDim = 12, kRows = 75;
  const PlainRvq plain = random_rvq(5, 70, kDim, 1);
  const ResidualVq quantizer = pack(plain);
  const Floats latents = random_floats(kDim * kRows, 9, 1.5f);
  const Tokens tokens = encode(quantizer, latents, 5);
  std::size_t checked = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    const Tokens want = plain.encode({latents.begin() + static_cast<std::ptrdiff_t>(row * kDim),
                                      latents.begin() + static_cast<std::ptrdiff_t>((row + 1) * kDim)});
    for (std::size_t i = 0; i < want.size(); ++i, ++checked)
      ASSERT_EQ(tokens[row * 5 + i], want[i]) << row << ", " << i;
  }
  EXPECT_GT(checked, 300u);
  const Floats decoded = decode(quantizer, tokens, 5);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t d = 0; d < kDim; ++d) {
      double want = 0;
      for (std::size_t i = 0; i < 5; ++i)
        want += plain.codebooks[i][static_cast<std::size_t>(tokens[row * 5 + i]) * kDim + d];
      ASSERT_NEAR(decoded[row * kDim + d], want, 1e-5);
    }
  }
  expect_contracts(quantizer, latents);
}

TEST(ResidualVq, TakesTheLowestIndexOnATie) {
  Floats codewords(20 * 3, 0.5f);  // twenty times the same codeword
  std::vector<Codebook> codebooks;
  codebooks.emplace_back(codewords, 20, 3, WeightType::f32);
  EXPECT_EQ(encode(ResidualVq(std::move(codebooks)), {1, 2, 3, 0, 0, 0}, 1), (Tokens{0, 0}));
}

TEST(ResidualVq, RefusesCodebooksThatDoNotFit) {
  EXPECT_THROW(ResidualVq({}), UsageError);
  EXPECT_THROW(Codebook(random_floats(12, 1), 5, 3, WeightType::f32), UsageError);
  std::vector<Codebook> codebooks;
  codebooks.emplace_back(random_floats(12, 1), 4, 3, WeightType::f32);
  codebooks.emplace_back(random_floats(16, 1), 4, 4, WeightType::f32);
  EXPECT_THROW(ResidualVq(std::move(codebooks)), UsageError);
}

TEST(Codebook, ForDecodingAloneDoesNotSearch) {
  std::vector<Codebook> codebooks;
  codebooks.emplace_back(random_floats(12, 1), 4, 3, WeightType::f32, /*searchable=*/false);
  const ResidualVq quantizer(std::move(codebooks));
  const Floats codewords = random_floats(12, 1);
  EXPECT_EQ(decode(quantizer, {2}, 1), Floats(codewords.begin() + 6, codewords.begin() + 9));
  EXPECT_THROW(encode(quantizer, codewords, 1), UsageError);
}

TEST(SplitResidualVq, BothHalvesSeeTheSameLatent) {
  constexpr int kOutside = 20, kInside = 8, kRows = 40;
  const PlainRvq semantic = random_rvq(1, 30, kInside, 1), acoustic = random_rvq(3, 40, kInside, 2);
  struct Weights {
    Floats in, out;  // [outside, inside], [inside, outside]
  };
  const Weights s{random_floats(kOutside * kInside, 11, 0.4f), random_floats(kOutside * kInside, 12, 0.4f)};
  const Weights a{random_floats(kOutside * kInside, 13, 0.4f), random_floats(kOutside * kInside, 14, 0.4f)};
  const auto half = [&](const PlainRvq& rvq, const Weights& weights) {
    return SplitResidualVq::Half{
        pack(rvq), PackedMatrix::pack(weights.in.data(), kOutside, kInside, kInside, 1, WeightType::f32),
        PackedMatrix::pack(weights.out.data(), kInside, kOutside, kOutside, 1, WeightType::f32)};
  };
  const SplitResidualVq quantizer(half(semantic, s), half(acoustic, a));
  EXPECT_EQ(quantizer.codebooks(), 4);
  EXPECT_EQ(quantizer.codebook_size(0), 30);
  EXPECT_EQ(quantizer.codebook_size(1), 40);
  const Floats latents = random_floats(kOutside * kRows, 5, 2.0f);
  const Tokens tokens = encode(quantizer, latents, 4);
  const Floats decoded = decode(quantizer, tokens, 4);
  const auto project = [](const double* x, const Floats& w, int k, int n) {
    std::vector<double> y(to_size(n));
    for (int i = 0; i < k; ++i) {
      for (int j = 0; j < n; ++j) y[to_size(j)] += x[i] * w[to_size(i * n + j)];
    }
    return y;
  };
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::vector<double> latent(latents.begin() + static_cast<std::ptrdiff_t>(row * kOutside),
                                     latents.begin() + static_cast<std::ptrdiff_t>((row + 1) * kOutside));
    std::vector<double> want_latent(kOutside);
    const auto check = [&](const PlainRvq& rvq, const Weights& weights, std::size_t first) {
      const Tokens want = rvq.encode(project(latent.data(), weights.in, kOutside, kInside));
      for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(tokens[row * 4 + first + i], want[i]);
      std::vector<double> sum(kInside);
      for (std::size_t i = 0; i < rvq.codebooks.size(); ++i) {
        for (std::size_t d = 0; d < kInside; ++d)
          sum[d] += rvq.codebooks[i][static_cast<std::size_t>(tokens[row * 4 + first + i]) * kInside + d];
      }
      const auto out = project(sum.data(), weights.out, kInside, kOutside);
      for (std::size_t d = 0; d < kOutside; ++d) want_latent[d] += out[d];
    };
    check(semantic, s, 0);
    check(acoustic, a, 1);
    for (std::size_t d = 0; d < kOutside; ++d) ASSERT_NEAR(decoded[row * kOutside + d], want_latent[d], 1e-5);
  }
  expect_contracts(quantizer, latents);
}

TEST(FactorizedVq, ComparesDirectionsAndSubtractsProjections) {
  constexpr int kOutside = 24, kInside = 6, kSize = 50, kLevels = 4, kRows = 40;
  std::vector<FactorizedVq::Level> levels;
  std::vector<Floats> in, out;  // [outside, inside], [inside, outside]
  for (std::uint64_t i = 0; i < kLevels; ++i) {
    in.push_back(random_floats(kOutside * kInside, 20 + i, 0.4f));
    out.push_back(random_floats(kOutside * kInside, 30 + i, 0.4f));
    levels.push_back({PackedMatrix::pack(in.back().data(), kOutside, kInside, kInside, 1, WeightType::f32),
                      random_floats(kInside, 40 + i, 0.1f),
                      PackedMatrix::pack(out.back().data(), kInside, kOutside, kOutside, 1, WeightType::f32),
                      random_floats(kOutside, 50 + i, 0.1f), random_floats(kSize * kInside, 60 + i, 2.0f)});
  }
  const FactorizedVq quantizer(levels);
  const Floats latents = random_floats(kOutside * kRows, 5, 2.0f);
  const Tokens tokens = encode(quantizer, latents, kLevels);
  const Floats decoded = decode(quantizer, tokens, kLevels);
  const auto normalized = [](std::vector<double> rows) {
    for (std::size_t at = 0; at < rows.size(); at += kInside) {
      double norm = 0;
      for (std::size_t d = 0; d < kInside; ++d) norm += rows[at + d] * rows[at + d];
      for (std::size_t d = 0; d < kInside; ++d) rows[at + d] /= std::sqrt(norm);
    }
    return rows;
  };
  std::size_t checked = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<double> residual(latents.begin() + static_cast<std::ptrdiff_t>(row * kOutside),
                                 latents.begin() + static_cast<std::ptrdiff_t>((row + 1) * kOutside));
    const std::vector<double> latent = residual;
    for (std::size_t i = 0; i < kLevels; ++i) {
      std::vector<double> code(levels[i].input_bias.begin(), levels[i].input_bias.end());
      for (std::size_t c = 0; c < kOutside; ++c) {
        for (std::size_t d = 0; d < kInside; ++d) code[d] += residual[c] * in[i][c * kInside + d];
      }
      const Nearest found = nearest(normalized(code), normalized(doubles(levels[i].codewords)));
      const std::size_t token = static_cast<std::size_t>(tokens[row * kLevels + i]);
      if (found.margin > 1e-4) {
        ASSERT_EQ(token, to_size(found.index));
        ++checked;
      }
      for (std::size_t c = 0; c < kOutside; ++c) {
        residual[c] -= levels[i].output_bias[c];
        for (std::size_t d = 0; d < kInside; ++d)
          residual[c] -= levels[i].codewords[token * kInside + d] * out[i][d * kOutside + c];
      }
    }
    for (std::size_t c = 0; c < kOutside; ++c)
      ASSERT_NEAR(decoded[row * kOutside + c], latent[c] - residual[c], 2e-5);
  }
  EXPECT_GT(checked, 140u);
  expect_contracts(quantizer, latents);
  levels[1].output_bias.pop_back();
  EXPECT_THROW(FactorizedVq{levels}, UsageError);
}

TEST(Fsq, EveryTokenDecodesToItsOwnLevelsAndBack) {
  const Fsq quantizer({8, 5, 3, 2});
  EXPECT_EQ(quantizer.codebook_size(0), 240);
  Tokens all(240);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  const Floats levels = decode(quantizer, all, 1);
  std::set<std::vector<float>> distinct;
  for (std::size_t i = 0; i < all.size(); ++i) {
    distinct.insert(Floats(levels.begin() + static_cast<std::ptrdiff_t>(4 * i),
                           levels.begin() + static_cast<std::ptrdiff_t>(4 * i + 4)));
  }
  EXPECT_EQ(distinct.size(), 240u);
  // The first dimension counts fastest; even numbers of levels reach -1 but not 1.
  EXPECT_EQ(Floats(levels.begin(), levels.begin() + 4), (Floats{-1, -1, -1, -1}));
  EXPECT_EQ(levels[4], -0.75f);
  EXPECT_EQ(levels[7 * 4], 0.75f);
}

TEST(Fsq, RoundsTheSquashedLatent) {
  const std::vector<int> sizes{8, 5, 3, 2};
  const Fsq quantizer(sizes);
  const Floats latents = random_floats(4 * 300, 3, 3.0f);
  const Tokens tokens = encode(quantizer, latents, 1);
  int checked = 0;
  for (std::size_t row = 0; row < 300; ++row) {
    int rest = tokens[row];
    for (std::size_t d = 0; d < 4; ++d) {
      const int digit = rest % sizes[d];
      rest /= sizes[d];
      const double half = (sizes[d] - 1) * 1.001 / 2, offset = sizes[d] % 2 ? 0.0 : 0.5;
      const double bounded = std::tanh(latents[row * 4 + d] + std::atanh(offset / half)) * half - offset;
      if (std::abs(bounded - std::floor(bounded) - 0.5) < 1e-4) continue;
      ASSERT_EQ(digit, static_cast<int>(std::round(bounded)) + sizes[d] / 2) << row << ", " << d;
      ++checked;
    }
  }
  EXPECT_GT(checked, 1150);
  expect_contracts(quantizer, latents);
}

TEST(Fsq, SurvivesWhatIsNoNumberAndRefusesBadLevels) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(encode(Fsq({4, 4}), {nan, inf, -inf, nan}, 1), (Tokens{12, 0}));
  EXPECT_THROW(Fsq({}), UsageError);
  EXPECT_THROW(Fsq({4, 1}), UsageError);
  EXPECT_THROW(Fsq({1 << 13, 1 << 13}), UsageError);
}

}  // namespace
}  // namespace tessera::test
