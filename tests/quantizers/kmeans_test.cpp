// k-means on data whose clusters are known, and its steps against plain loops.
#include "quantizers/kmeans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

constexpr int kClusters = 27, kPerCluster = 40;

// 27 points of a grid in 3-D, 10 apart, each with rows within 0.1 of it; rows of all clusters mixed.
Floats grid_rows() {
  Floats rows = random_floats(to_size(kClusters * kPerCluster * 3), 5, 0.1f);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int cluster = static_cast<int>(i / 3) % kClusters;
    const int place[] = {cluster % 3, cluster / 3 % 3, cluster / 9};
    rows[i] += 10.0f * static_cast<float>(place[i % 3]);
  }
  return rows;
}

// Which cluster of the grid a centre belongs to; -1 if it is farther than 0.1 from all.
int cluster_of(const float* centre) {
  int cluster = 0;
  for (int d = 2; d >= 0; --d) {
    const float place = std::round(centre[d] / 10.0f);
    if (std::abs(centre[d] - 10.0f * place) > 0.1f) return -1;
    cluster = 3 * cluster + static_cast<int>(place);
  }
  return cluster;
}

Floats run(const Floats& rows, int dimension, int size, const KMeansOptions& options, std::uint64_t seed = 1,
           int threads = 1) {
  ThreadPool pool(threads);
  Random random(seed);
  return kmeans(rows.data(), static_cast<int>(rows.size()) / dimension, dimension, size, options, random,
                pool);
}

double error_of(const Floats& rows, const Floats& centres, int dimension) {
  double error = 0;
  for (std::size_t r = 0; r < rows.size(); r += to_size(dimension)) {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < centres.size(); c += to_size(dimension)) {
      double distance = 0;
      for (std::size_t d = 0; d < to_size(dimension); ++d)
        distance += std::pow(double{rows[r + d]} - double{centres[c + d]}, 2);
      best = std::min(best, distance);
    }
    error += best;
  }
  return error;
}

TEST(KMeans, FindsSeparateClusters) {
  const Floats rows = grid_rows();
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Floats centres = run(rows, 3, kClusters, {}, seed);
    std::set<int> found;
    for (int c = 0; c < kClusters; ++c) found.insert(cluster_of(centres.data() + 3 * c));
    EXPECT_EQ(found.size(), to_size(kClusters)) << "seed " << seed;
    EXPECT_EQ(found.count(-1), 0u);
    // Each centre is the mean of its rows.
    for (int c = 0; c < kClusters; ++c) {
      const int cluster = cluster_of(centres.data() + 3 * c);
      for (int d = 0; d < 3; ++d) {
        double mean = 0;
        for (int i = 0; i < kPerCluster; ++i)
          mean += double{rows[to_size((i * kClusters + cluster) * 3 + d)]} / kPerCluster;
        EXPECT_NEAR(double{centres[to_size(3 * c + d)]}, mean, 1e-5);
      }
    }
  }
}

TEST(KMeans, SeedsOfPlusPlusAreSpreadOverTheClusters) {
  const Floats rows = grid_rows();
  const auto clusters_hit = [&](KMeansSeeding seeding) {
    const Floats seeds = run(rows, 3, kClusters, {.iterations = 0, .seeding = seeding});
    std::set<int> found;
    for (int c = 0; c < kClusters; ++c) found.insert(cluster_of(seeds.data() + 3 * c));
    return static_cast<int>(found.size());
  };
  EXPECT_GE(clusters_hit(KMeansSeeding::plus_plus), 24);  // seldom two in one cluster
  EXPECT_LT(clusters_hit(KMeansSeeding::distinct_rows), 23);
}

TEST(KMeans, SeedsOfDistinctRowsAreDifferentRows) {
  const Floats rows = random_floats(200 * 4, 3);
  const Floats seeds =
      run(rows, 4, 200, {.iterations = 0, .seeding = KMeansSeeding::distinct_rows});  // all of them
  std::multiset<Floats> want, got;
  for (std::size_t r = 0; r < 200; ++r) {
    want.insert(Floats(rows.begin() + static_cast<int>(4 * r), rows.begin() + static_cast<int>(4 * r + 4)));
    got.insert(Floats(seeds.begin() + static_cast<int>(4 * r), seeds.begin() + static_cast<int>(4 * r + 4)));
  }
  EXPECT_EQ(got, want);
  EXPECT_NE(seeds, rows);
}

TEST(KMeans, IterationsLowerTheError) {
  const Floats rows = random_floats(1500 * 8, 7);
  for (const KMeansSeeding seeding : {KMeansSeeding::plus_plus, KMeansSeeding::distinct_rows}) {
    double before = std::numeric_limits<double>::infinity();
    for (const int iterations : {0, 1, 3, 10}) {
      const double error =
          error_of(rows, run(rows, 8, 64, {.iterations = iterations, .seeding = seeding}), 8);
      EXPECT_LT(error, before) << iterations;
      before = error;
    }
  }
}

TEST(KMeans, EmptyClustersMoveToRowsThatFitWorst) {
  // 200 copies of one point and five other points: distinct rows seed the same point again and again.
  Floats rows(205 * 2, 1.0f);
  for (int i = 0; i < 5; ++i) rows[to_size(2 * (40 * i + 7))] = 10.0f + 3.0f * static_cast<float>(i);
  const KMeansOptions options{.iterations = 10, .seeding = KMeansSeeding::distinct_rows};
  EXPECT_EQ(error_of(rows, run(rows, 2, 6, options), 2), 0);
  EXPECT_GT(error_of(rows, run(rows, 2, 6, {.iterations = 0, .seeding = KMeansSeeding::distinct_rows}), 2),
            0);
}

TEST(KMeans, FewerDifferentRowsThanCentres) {
  Floats rows(60, 2.0f);
  for (std::size_t i = 0; i < rows.size(); i += 6) rows[i] = -1.0f;
  for (const KMeansSeeding seeding : {KMeansSeeding::plus_plus, KMeansSeeding::distinct_rows}) {
    const Floats centres = run(rows, 3, 16, {.seeding = seeding});
    EXPECT_EQ(error_of(rows, centres, 3), 0);
    for (const float value : centres) EXPECT_TRUE(value == 2.0f || value == -1.0f) << value;
  }
}

TEST(KMeans, SameBitsForAnyNumberOfThreads) {
  const Floats rows = random_floats(1111 * 24, 9);
  for (const KMeansSeeding seeding : {KMeansSeeding::plus_plus, KMeansSeeding::distinct_rows}) {
    const Floats one = run(rows, 24, 100, {.seeding = seeding}, 4, 1);
    EXPECT_EQ(run(rows, 24, 100, {.seeding = seeding}, 4, 3), one);
    EXPECT_NE(run(rows, 24, 100, {.seeding = seeding}, 5, 1), one);
  }
}

TEST(KMeans, NearestRowsIsTheSearchOfTheCodebook) {
  const int count = 333, dimension = 12, size = 50;
  const Floats rows = random_floats(to_size(count * dimension), 1);
  const Floats words = random_floats(to_size(size * dimension), 2);
  const Codebook codebook(words, size, dimension, WeightType::f32);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<std::int32_t> indices(to_size(count), -5);
    nearest_rows(codebook, rows.data(), count, indices.data(), pool);
    for (int r = 0; r < count; ++r) {
      const auto distance = [&](int c) {
        double sum = 0;
        for (int d = 0; d < dimension; ++d)
          sum += std::pow(
              double{rows[to_size(r * dimension + d)]} - double{words[to_size(c * dimension + d)]}, 2);
        return sum;
      };
      ASSERT_GE(indices[to_size(r)], 0);
      for (int c = 0; c < size; ++c) ASSERT_LT(distance(indices[to_size(r)]), distance(c) + 1e-5);
    }
  }
}

TEST(KMeans, SumsOfClusters) {
  const int count = 100, dimension = 5, size = 40;
  const Floats rows = random_floats(to_size(count * dimension), 1);
  std::vector<std::int32_t> indices(to_size(count));
  for (int r = 0; r < count; ++r) indices[to_size(r)] = r % 7 == 0 ? -1 : r * r % size;
  Floats want_counts(to_size(size), 1.0f), want_sums(to_size(size * dimension), 0.5f);  // it adds
  Floats counts = want_counts, sums = want_sums;
  for (int r = 0; r < count; ++r) {
    const int c = indices[to_size(r)];
    if (c < 0) continue;
    want_counts[to_size(c)] += 1.0f;
    for (int d = 0; d < dimension; ++d)
      want_sums[to_size(c * dimension + d)] += rows[to_size(r * dimension + d)];
  }
  ThreadPool pool(3);
  sum_clusters(rows.data(), indices, dimension, size, counts.data(), sums.data(), pool);
  EXPECT_EQ(counts, want_counts);
  EXPECT_EQ(sums, want_sums);
  indices[3] = size;
  EXPECT_THROW(sum_clusters(rows.data(), indices, dimension, size, counts.data(), sums.data(), pool),
               UsageError);
}

TEST(KMeans, SampleDistinct) {
  Random random(1);
  for (const int picks : {0, 1, 7, 10, 12}) {
    const std::vector<int> numbers = sample_distinct(random, 10, picks);
    EXPECT_EQ(numbers.size(), to_size(std::min(picks, 10)));
    EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()).size(), numbers.size());
    for (const int number : numbers) EXPECT_TRUE(number >= 0 && number < 10);
  }
  std::vector<int> seen(10);
  for (int i = 0; i < 1000; ++i) {
    for (const int number : sample_distinct(random, 10, 3)) ++seen[to_size(number)];
  }
  for (const int times : seen) EXPECT_NEAR(times, 300, 75);  // 5 standard deviations
  EXPECT_TRUE(sample_distinct(random, 0, 3).empty());
}

TEST(KMeans, BadInput) {
  Floats rows = random_floats(10 * 2, 1);
  EXPECT_THROW(run(rows, 2, 11, {}), UsageError);
  EXPECT_THROW(run({}, 2, 1, {}), UsageError);
  EXPECT_THROW(run(rows, 2, 0, {}), UsageError);
  EXPECT_EQ(run(rows, 2, 10, {}).size(), 20u);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF}) {
    rows[7] = bad;
    try {
      run(rows, 2, 3, {});
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(), "[kmeans] expected finite rows, got row 3 that is not");
    }
  }
}

}  // namespace
}  // namespace tessera::test
