// k-means (Lloyd 1982) with k-means++ seeding (Arthur and Vassilvitskii 2007), and its two steps for others:
// the nearest codeword of many rows, and the sums of the rows of each cluster. Exact over all rows (no
// mini-batches, no triangle inequality); any number of threads gives the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/thread_pool.h"
#include "quantizers/codebook.h"

namespace tessera {

enum class KMeansSeeding : std::uint8_t {
  plus_plus,      ///< rows far from the centres before, with probability by squared distance
  distinct_rows,  ///< any rows, each once
};

struct KMeansOptions {
  int iterations = 10;  ///< Lloyd steps at most; 0 keeps the seeds
  KMeansSeeding seeding = KMeansSeeding::plus_plus;
};

/// rows [count, dimension] -> centres [size, dimension]. A centre that loses all rows moves to the row
/// farthest from its own centre. Throws UsageError for fewer rows than centres, and for rows that are not
/// finite.
std::vector<float> kmeans(const float* rows, int count, int dimension, int size, const KMeansOptions& options,
                          Random& random, ThreadPool& pool);

/// indices [count]: the nearest codeword of each row [count, codebook.dimension()].
void nearest_rows(const Codebook& codebook, const float* rows, int count, std::int32_t* indices,
                  ThreadPool& pool);

/// Adds row r to cluster indices[r]: counts[index] += 1, sums[index] += rows[r], in the order of the rows.
/// Rows with an index below 0 are left out. counts [size], sums [size, dimension].
void sum_clusters(const float* rows, std::span<const std::int32_t> indices, int dimension, int size,
                  float* counts, float* sums, ThreadPool& pool);

/// min(picks, count) different numbers from 0 to count - 1, in random order.
std::vector<int> sample_distinct(Random& random, int count, int picks);

}  // namespace tessera
