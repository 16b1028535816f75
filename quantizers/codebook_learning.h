// A codebook that learns from data: k-means start, then moving averages (EMA) of the rows that choose each
// codeword (van den Oord et al. 2017, appendix A.1; Razavi et al. 2019), with codewords that died put beside
// the most used ones, which split (Linde, Buzo and Gray 1980). What a batch says are plain sums, so that
// ranks can add theirs up before the update. Leaves out gradients: train/quantizers/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/tensor.h"
#include "core/thread_pool.h"
#include "quantizers/kmeans.h"

namespace tessera {

/// Replaces values by their sums over all ranks.
using AllReduce = std::function<void(std::span<float>)>;

struct CodebookOptions {
  int size = 1024;
  int dimension = 128;
  float decay = 0.99f;      ///< of the averages, per update
  float epsilon = 1e-5f;    ///< Laplace smoothing of the cluster sizes
  float dead_below = 0.4f;  ///< a codeword with less than this part of an even share of the rows is
                            ///< replaced; 0: none is
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  ///< different for the codebooks of one quantizer
};

class CodebookLearner {
 public:
  /// Starts with normally distributed codewords of about unit length. Throws UsageError for options out of
  /// range.
  explicit CodebookLearner(const CodebookOptions& options);
  CodebookLearner(CodebookLearner&&) = default;  // not copied: both would share their storage
  CodebookLearner& operator=(CodebookLearner&&) = default;

  int size() const { return options_.size; }
  int dimension() const { return options_.dimension; }
  /// [size, dimension]
  std::span<const float> codewords() const { return span_of(codewords_); }

  /// Codewords from the k-means of rows [count, dimension]; errors as kmeans().
  void start(const float* rows, int count, const KMeansOptions& options, ThreadPool& pool);
  /// Given codewords [size, dimension]. All count as equally used.
  void start(std::span<const float> codewords);

  /// Floats of a batch's statistics: counts [size], then sums [size, dimension]. They may be added up over
  /// batches and ranks.
  std::size_t statistics_size() const { return to_size(size()) * (to_size(dimension()) + 1); }
  /// Adds rows [indices.size(), dimension] and the codewords that they chose to `statistics`. An index below
  /// 0 leaves its row out.
  void collect(const float* rows, std::span<const std::int32_t> indices, std::span<float> statistics,
               ThreadPool& pool) const;

  /// One step of the averages: N = decay N + (1 - decay) count, m = decay m + (1 - decay) sum, codeword = m /
  /// smoothed N. Then the most used codewords are split in two, a little apart, with half the averages each,
  /// and the second takes the place of a dead one, unless that would leave both dead; in which direction
  /// depends on seed, stream and `step`. Ranks that give the same statistics end up with the same codebook.
  /// Statistics of no rows change nothing. Error (damaged), nothing changed: values that are not finite.
  Result<void> update(std::span<const float> statistics, std::uint64_t step, ThreadPool& pool);

  /// The state: `codewords`, `sizes` (N) and `sums` (m). Shares the storage: copy it to keep it, write to it
  /// to restore.
  std::vector<std::pair<std::string, Tensor>> save() const;

 private:
  static std::size_t to_size(int value) { return static_cast<std::size_t>(value); }
  static std::span<const float> span_of(const Tensor& tensor) {
    return {tensor.f32(), static_cast<std::size_t>(tensor.size())};
  }
  void replace_dead(std::uint64_t step);

  CodebookOptions options_;
  Tensor codewords_;  // [size, dimension]
  Tensor sizes_;      // [size]
  Tensor sums_;       // [size, dimension]
};

/// How evenly a codebook is used, counted over a window that ends with reset().
class CodebookUsage {
 public:
  explicit CodebookUsage(int size) : counts_(Tensor::zeros({size})) {}
  CodebookUsage(CodebookUsage&&) = default;
  CodebookUsage& operator=(CodebookUsage&&) = default;

  /// Adds how often each codeword was chosen. Exact up to 2^24 times per codeword.
  void add(std::span<const float> counts);
  void reset();
  /// exp of the entropy of the codewords: from 1 (always the same one) to the size (all alike); 0 before
  /// anything was counted.
  double perplexity() const;
  /// Codewords that were not chosen.
  int unused() const;
  /// [size], the storage itself.
  const Tensor& counts() const { return counts_; }

 private:
  Tensor counts_;
};

}  // namespace tessera
