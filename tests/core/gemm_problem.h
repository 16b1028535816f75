// A matrix product with everything it points to, and its promised result: shared by the tests of the product.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/gemm.h"

namespace tessera::gemm_testing {

struct GemmShape {
  int m, k, n;
  int segments = 1;
};

inline std::string name_of(const GemmShape& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.k) + " x " + std::to_string(s.n) + ", " +
         std::to_string(s.segments) + " segments";
}

// A product with everything it points to. Rows overlap: each starts 5 floats after the one before.
struct GemmProblem {
  GemmProblem(const GemmShape& s, WeightType type, unsigned seed = 1) : shape(s) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&](std::vector<float>& v, std::size_t count) {
      v.resize(count);
      for (float& x : v) x = uniform(random);
    };
    length = s.k / s.segments;
    segment_stride = length + 3;
    fill(x, static_cast<std::size_t>(5 * s.m + segment_stride * s.segments));
    fill(w, static_cast<std::size_t>(s.k) * static_cast<std::size_t>(s.n));
    fill(bias, static_cast<std::size_t>(s.n));
    fill(before, static_cast<std::size_t>(s.m) * static_cast<std::size_t>(s.n + 3));
    for (int i = 0; i < s.m; ++i) rows.push_back(x.data() + 5 * i);
    pack(type);
  }
  GemmProblem(const GemmProblem&) = delete;

  void pack(WeightType type) { packed = PackedMatrix::pack(w.data(), shape.k, shape.n, shape.n, 1, type); }
  float row_value(int i, int q) const {
    return rows[static_cast<std::size_t>(i)][q / length * segment_stride + q % length];
  }
  float weight(int q, int j) const {
    return w[static_cast<std::size_t>(q) * static_cast<std::size_t>(shape.n) + j];
  }
  float start_value(GemmStart start, int i, int j) const {
    if (start == GemmStart::zero) return 0;
    if (start == GemmStart::bias) return bias[static_cast<std::size_t>(j)];
    return before[static_cast<std::size_t>(i) * static_cast<std::size_t>(shape.n + 3) + j];
  }
  // The whole of `out`, with the three floats after each row that must stay.
  std::vector<float> run(GemmStart start, int threads = 1) const {
    std::vector<float> out = before;
    ThreadPool pool(threads);
    gemm({.rows = rows,
          .segments = shape.segments,
          .segment_stride = segment_stride,
          .weights = &packed,
          .start = start,
          .bias = bias.data(),
          .out = out.data(),
          .out_stride = shape.n + 3},
         pool);
    return out;
  }

  GemmShape shape;
  int length = 0, segment_stride = 0;
  std::vector<float> x, w, bias, before;
  std::vector<const float*> rows;
  PackedMatrix packed;
};

/// The promised arithmetic, one multiply-add at a time.
inline std::vector<float> gemm_chain(const GemmProblem& p, GemmStart start) {
  std::vector<float> out = p.before;
  for (int i = 0; i < p.shape.m; ++i) {
    for (int j = 0; j < p.shape.n; ++j) {
      float sum = p.start_value(start, i, j);
      for (int q = 0; q < p.shape.k; ++q) sum = std::fma(p.row_value(i, q), p.weight(q, j), sum);
      out[static_cast<std::size_t>(i) * static_cast<std::size_t>(p.shape.n + 3) + j] = sum;
    }
  }
  return out;
}

// Equal bits, where any NaN equals any other.
inline ::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tessera::gemm_testing
