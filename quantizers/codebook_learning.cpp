#include "quantizers/codebook_learning.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/norm.h"

namespace tessera {
namespace {

// What random numbers are for; codebooks take two streams each.
enum class Use : std::uint64_t { start = 0, replacement = 1 };

// How far the two codewords that come of one lie to each side of it, relative to its values.
constexpr float kSplit = 0.01f;

Random random_for(const CodebookOptions& options, Use use, std::uint64_t step) {
  return Random(options.seed, 2 * options.stream + static_cast<std::uint64_t>(use), step);
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

CodebookLearner::CodebookLearner(const CodebookOptions& options) : options_(options) {
  if (options.size < 1 || options.dimension < 1) {
    fail("codebook_learner", "at least one codeword of one dimension",
         std::to_string(options.size) + " of " + std::to_string(options.dimension));
  }
  const bool in_range =
      options.decay >= 0 && options.decay < 1 && options.epsilon >= 0 && options.dead_below >= 0;
  if (!in_range) {
    fail("codebook_learner", "0 <= decay < 1, epsilon >= 0, dead_below >= 0",
         std::to_string(options.decay) + ", " + std::to_string(options.epsilon) + ", " +
             std::to_string(options.dead_below));
  }
  codewords_ = Tensor::zeros({options.size, options.dimension});
  sizes_ = Tensor::zeros({options.size});
  sums_ = Tensor::zeros({options.size, options.dimension});
  Random random = random_for(options_, Use::start, 0);
  std::vector<float> codewords(to_size(size()) * to_size(dimension()));
  const float scale = 1.0f / std::sqrt(static_cast<float>(dimension()));
  for (float& value : codewords) value = scale * random.normal();
  start(codewords);
}

void CodebookLearner::start(const float* rows, int count, const KMeansOptions& options, ThreadPool& pool) {
  Random random = random_for(options_, Use::start, 1);
  start(kmeans(rows, count, dimension(), size(), options, random, pool));
}

void CodebookLearner::start(std::span<const float> codewords) {
  if (codewords.size() != to_size(size()) * to_size(dimension())) {
    fail("codebook_learner", codewords_.shape().str() + " codewords",
         std::to_string(codewords.size()) + " values");
  }
  std::copy(codewords.begin(), codewords.end(), codewords_.f32());
  std::copy(codewords.begin(), codewords.end(), sums_.f32());
  std::fill_n(sizes_.f32(), size(), 1.0f);
}

void CodebookLearner::collect(const float* rows, std::span<const std::int32_t> indices,
                              std::span<float> statistics, ThreadPool& pool) const {
  if (statistics.size() != statistics_size()) {
    fail("codebook_learner", std::to_string(statistics_size()) + " statistics",
         std::to_string(statistics.size()));
  }
  sum_clusters(rows, indices, dimension(), size(), statistics.data(), statistics.data() + size(), pool);
}

Result<void> CodebookLearner::update(std::span<const float> statistics, std::uint64_t step,
                                     ThreadPool& pool) {
  if (statistics.size() != statistics_size()) {
    fail("codebook_learner", std::to_string(statistics_size()) + " statistics",
         std::to_string(statistics.size()));
  }
  if (!all_finite(statistics)) {
    return Error{ErrorCode::damaged, "codebook update, step " + std::to_string(step) +
                                         ": expected finite latents, got NaN or infinity"};
  }
  const std::span<const float> counts = statistics.first(to_size(size()));
  if (std::all_of(counts.begin(), counts.end(), [](float count) { return count == 0.0f; })) return {};

  const float keep = options_.decay, take = 1.0f - options_.decay, epsilon = options_.epsilon;
  float* sizes = sizes_.f32();
  for (int c = 0; c < size(); ++c) sizes[c] = keep * sizes[c] + take * counts[to_size(c)];
  const float total = fixed_sum(sizes, to_size(size()));
  const float scale = total / (total + static_cast<float>(size()) * epsilon);
  constexpr int kBlock = 64;
  pool.parallel_for((size() + kBlock - 1) / kBlock, [&](int block) {
    for (int c = block * kBlock; c < std::min(size(), (block + 1) * kBlock); ++c) {
      const std::size_t at = to_size(c) * to_size(dimension());
      const float smoothed = (sizes[c] + epsilon) * scale;
      const float* batch = statistics.data() + to_size(size()) + at;
      float* sum = sums_.f32() + at;
      float* codeword = codewords_.f32() + at;
      for (int d = 0; d < dimension(); ++d) {
        sum[d] = keep * sum[d] + take * batch[d];
        // An unused size may reach 0, with epsilon 0: there is no mean then.
        if (smoothed > 0.0f) codeword[d] = sum[d] / smoothed;
      }
    }
  });
  replace_dead(step);
  return {};
}

void CodebookLearner::replace_dead(std::uint64_t step) {
  float* sizes = sizes_.f32();
  const float least = options_.dead_below * fixed_sum(sizes, to_size(size())) / static_cast<float>(size());
  std::vector<int> dead, used;
  for (int c = 0; c < size(); ++c) (sizes[c] < least ? dead : used).push_back(c);
  if (dead.empty()) return;
  std::ranges::stable_sort(used, [&](int a, int b) { return sizes[a] > sizes[b]; });
  Random random = random_for(options_, Use::replacement, step);
  const std::size_t width = to_size(dimension());
  for (std::size_t i = 0; i < std::min(dead.size(), used.size()); ++i) {
    if (0.5f * sizes[used[i]] < least) break;  // both halves would be dead
    float* from = codewords_.f32() + to_size(used[i]) * width;
    float* to = codewords_.f32() + to_size(dead[i]) * width;
    const float half = 0.5f * sizes[used[i]];
    sizes[used[i]] = sizes[dead[i]] = half;
    const float spread = kSplit * std::sqrt(fixed_dot(from, from, width) / static_cast<float>(dimension()));
    for (std::size_t d = 0; d < width; ++d) {
      const float apart = spread * random.normal();
      to[d] = from[d] - apart;
      from[d] += apart;
      sums_.f32()[to_size(used[i]) * width + d] = from[d] * half;
      sums_.f32()[to_size(dead[i]) * width + d] = to[d] * half;
    }
  }
}

std::vector<std::pair<std::string, Tensor>> CodebookLearner::save() const {
  return {{"codewords", codewords_}, {"sizes", sizes_}, {"sums", sums_}};
}

void CodebookUsage::add(std::span<const float> counts) {
  if (counts.size() != static_cast<std::size_t>(counts_.size())) {
    fail("codebook_usage", std::to_string(counts_.size()) + " counts", std::to_string(counts.size()));
  }
  for (std::size_t c = 0; c < counts.size(); ++c) counts_.f32()[c] += counts[c];
}

void CodebookUsage::reset() {
  std::memset(counts_.raw(), 0, counts_.bytes());
}

double CodebookUsage::perplexity() const {
  const std::span<const float> counts(counts_.f32(), static_cast<std::size_t>(counts_.size()));
  double total = 0, entropy = 0;
  for (const float count : counts) total += static_cast<double>(count);
  if (total <= 0) return 0;
  for (const float count : counts) {
    const double part = static_cast<double>(count) / total;
    if (part > 0) entropy -= part * exact_log(part);
  }
  return exact_exp(entropy);
}

int CodebookUsage::unused() const {
  return static_cast<int>(std::count(counts_.f32(), counts_.f32() + counts_.size(), 0.0f));
}

}  // namespace tessera
