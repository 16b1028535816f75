#include "quantizers/kmeans.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/norm.h"
#include "quantizers/row_blocks.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

constexpr int kRows = 64;        // searched by a thread at a time
constexpr int kShortRows = 512;  // where a row costs one dot product
constexpr int kClusters = 16;    // summed by a thread at a time

template <class Body>
void for_rows(ThreadPool& pool, int count, int block, const Body& body) {
  pool.parallel_for((count + block - 1) / block, [&](int i) {
    for (int row = i * block; row < std::min(count, (i + 1) * block); ++row) body(row);
  });
}

class KMeans {
 public:
  KMeans(const float* rows, int count, int dimension, int size, ThreadPool& pool)
      : rows_(rows), count_(count), dimension_(dimension), size_(size), pool_(pool), norms_(to_size(count)) {
    for_rows(pool_, count_, kShortRows, [&](int r) { norms_[to_size(r)] = dot(row(r), row(r)); });
    for (int r = 0; r < count_; ++r) {
      if (!std::isfinite(norms_[to_size(r)])) {
        fail("kmeans", "finite rows", "row " + std::to_string(r) + " that is not");
      }
    }
  }

  std::vector<float> run(const KMeansOptions& options, Random& random) {
    centres_.resize(to_size(size_) * to_size(dimension_));
    if (options.seeding == KMeansSeeding::plus_plus) {
      seed_plus_plus(random);
    } else {
      int centre = 0;
      for (const int r : sample_distinct(random, count_, size_)) set_centre(centre++, r);
    }
    std::vector<std::int32_t> indices(to_size(count_)), before;
    std::vector<float> counts(to_size(size_)), sums(centres_.size());
    for (int i = 0; i < options.iterations; ++i) {
      nearest_rows(Codebook(centres_, size_, dimension_, WeightType::f32), rows_, count_, indices.data(),
                   pool_);
      if (indices == before) break;  // the centres are the means already
      std::fill(counts.begin(), counts.end(), 0.0f);
      std::fill(sums.begin(), sums.end(), 0.0f);
      sum_clusters(rows_, indices, dimension_, size_, counts.data(), sums.data(), pool_);
      take_means(counts, sums);
      before = fill_empty(counts, indices) ? std::vector<std::int32_t>() : indices;
    }
    return std::move(centres_);
  }

 private:
  const float* row(int r) const { return rows_ + to_size(r) * to_size(dimension_); }
  float* centre(int c) { return centres_.data() + to_size(c) * to_size(dimension_); }
  float dot(const float* a, const float* b) const { return fixed_dot(a, b, to_size(dimension_)); }
  void set_centre(int c, int r) { std::copy_n(row(r), dimension_, centre(c)); }
  /// Exactly 0 between equal rows; rounding must not make it negative.
  float squared_distance(int r, const float* c, float c_norm) const {
    return std::max(norms_[to_size(r)] + c_norm - 2.0f * dot(row(r), c), 0.0f);
  }

  void seed_plus_plus(Random& random) {
    std::vector<float> distances(to_size(count_), HUGE_VALF);  // to the nearest centre so far
    int chosen = static_cast<int>(random.below(count_));
    for (int c = 0; c < size_; ++c) {
      set_centre(c, chosen);
      if (c + 1 == size_) break;
      const float norm = norms_[to_size(chosen)];
      for_rows(pool_, count_, kShortRows, [&](int r) {
        float& distance = distances[to_size(r)];
        if (distance > 0.0f) distance = std::min(distance, squared_distance(r, row(chosen), norm));
      });
      double total = 0;
      for (const float distance : distances) total += static_cast<double>(distance);
      if (total <= 0) {  // fewer different rows than centres
        chosen = static_cast<int>(random.below(count_));
        continue;
      }
      double left = static_cast<double>(random.next() >> 11) * 0x1p-53 * total;
      for (int r = 0; r < count_; ++r) {
        if (distances[to_size(r)] <= 0.0f) continue;
        chosen = r;  // also the last one, should rounding leave something over
        left -= static_cast<double>(distances[to_size(r)]);
        if (left < 0) break;
      }
    }
  }

  void take_means(const std::vector<float>& counts, const std::vector<float>& sums) {
    for (int c = 0; c < size_; ++c) {
      if (counts[to_size(c)] == 0.0f) continue;
      const float* sum = sums.data() + to_size(c) * to_size(dimension_);
      for (int d = 0; d < dimension_; ++d) centre(c)[d] = sum[d] / counts[to_size(c)];
    }
  }

  /// Moves centres without rows to the rows that fit worst. Returns whether there were any.
  bool fill_empty(const std::vector<float>& counts, const std::vector<std::int32_t>& indices) {
    const auto empty = std::count(counts.begin(), counts.end(), 0.0f);
    if (empty == 0) return false;
    std::vector<float> centre_norms(to_size(size_)), distances(to_size(count_));
    for (int c = 0; c < size_; ++c) centre_norms[to_size(c)] = dot(centre(c), centre(c));
    for_rows(pool_, count_, kShortRows, [&](int r) {
      const int c = indices[to_size(r)];
      distances[to_size(r)] = squared_distance(r, centre(c), centre_norms[to_size(c)]);
    });
    std::vector<int> order(to_size(count_));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + empty, order.end(), [&](int a, int b) {
      const float da = distances[to_size(a)], db = distances[to_size(b)];
      return da != db ? da > db : a < b;
    });
    auto worst = order.begin();
    for (int c = 0; c < size_; ++c) {
      if (counts[to_size(c)] != 0.0f) continue;
      if (distances[to_size(*worst)] <= 0.0f) break;  // every row is its own centre
      set_centre(c, *worst++);
    }
    return true;
  }

  const float* rows_;
  int count_, dimension_, size_;
  ThreadPool& pool_;
  std::vector<float> norms_;    // |row|^2
  std::vector<float> centres_;  // [size, dimension]
};

}  // namespace

std::vector<float> kmeans(const float* rows, int count, int dimension, int size, const KMeansOptions& options,
                          Random& random, ThreadPool& pool) {
  if (size < 1 || dimension < 1) {
    fail("kmeans", "at least one centre of one dimension",
         std::to_string(size) + " of " + std::to_string(dimension));
  }
  if (count < size) {
    fail("kmeans", "at least as many rows as centres, " + std::to_string(size), std::to_string(count));
  }
  return KMeans(rows, count, dimension, size, pool).run(options, random);
}

void nearest_rows(const Codebook& codebook, const float* rows, int count, std::int32_t* indices,
                  ThreadPool& pool) {
  for_each_with_workspace(pool, (count + kRows - 1) / kRows, codebook.workspace_bytes(kRows),
                          [&](int block, StepContext& context) {
                            const int first = block * kRows;
                            codebook.nearest(rows + to_size(first) * to_size(codebook.dimension()),
                                             std::min(kRows, count - first), indices + first, 1, context);
                          });
}

void sum_clusters(const float* rows, std::span<const std::int32_t> indices, int dimension, int size,
                  float* counts, float* sums, ThreadPool& pool) {
  // The rows of each cluster, in order: those of cluster c are order[ends[c - 1] .. ends[c]).
  std::vector<int> ends(to_size(size)), order(indices.size());
  for (const std::int32_t index : indices) {
    if (index >= size) {
      fail("sum_clusters", "indices below " + std::to_string(size), std::to_string(index));
    }
    if (index >= 0) ++ends[to_size(index)];
  }
  std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), 0);
  for (std::size_t r = 0; r < indices.size(); ++r) {
    if (indices[r] >= 0) order[to_size(ends[to_size(indices[r])]++)] = static_cast<int>(r);
  }
  for_rows(pool, size, kClusters, [&](int c) {
    const int begin = c == 0 ? 0 : ends[to_size(c - 1)], end = ends[to_size(c)];
    counts[c] += static_cast<float>(end - begin);
    float* sum = sums + to_size(c) * to_size(dimension);
    for (int i = begin; i < end; ++i) {
      const float* row = rows + to_size(order[to_size(i)]) * to_size(dimension);
      for (int d = 0; d < dimension; ++d) sum[d] += row[d];
    }
  });
}

std::vector<int> sample_distinct(Random& random, int count, int picks) {
  picks = std::min(picks, count);
  std::vector<int> numbers(to_size(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = 0; i < picks; ++i) {
    std::swap(numbers[to_size(i)], numbers[to_size(i + static_cast<int>(random.below(count - i)))]);
  }
  numbers.resize(to_size(picks));
  return numbers;
}

}  // namespace tessera
