// Normal equations in double, Cholesky's factorization, and counting. Lanes run along rows of matrices, never
// along a sum, and threads share out rows of results.
#include "train/probe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/error.h"

namespace tessera::train {
namespace {

constexpr int kGramRows = 8;      // of the Gram matrix at a time: their sums stay in the cache
constexpr int kPredictRows = 64;  // a thread's share

void check_rows(const char* op, const Tensor& features, std::int64_t rows, std::int64_t columns) {
  if (features.shape().rank() != 2 || features.dtype() != DType::f32 ||
      (rows >= 0 && features.dim(0) != rows) || (columns >= 0 && features.dim(1) != columns)) {
    const auto extent = [](std::int64_t n) { return n < 0 ? std::string("any") : std::to_string(n); };
    fail(op, "features [" + extent(rows) + ", " + extent(columns) + "] in f32",
         features.shape().str() + " in " + name_of(features.dtype()));
  }
}

void check_labels(const char* op, std::span<const std::int32_t> labels, int classes) {
  const bool any = std::any_of(labels.begin(), labels.end(), [](std::int32_t label) { return label >= 0; });
  const auto most = std::max_element(labels.begin(), labels.end());
  if (classes < 1 || !any || *most >= classes) {
    fail(op, "labels below " + std::to_string(classes) + ", one of them at least 0",
         any ? "label " + std::to_string(*most) : "none");
  }
}

/// Upper triangle of z^T z for z [rows, columns], as [columns, columns].
std::vector<double> gram(const std::vector<float>& z, std::size_t columns, ThreadPool& pool) {
  std::vector<double> sums(columns * columns);
  const std::size_t rows = z.size() / columns;
  const int blocks = static_cast<int>((columns + kGramRows - 1) / kGramRows);
  pool.parallel_for(blocks, [&](int block) {
    const std::size_t begin = static_cast<std::size_t>(block) * kGramRows;
    const std::size_t end = std::min(begin + kGramRows, columns);
    for (std::size_t row = 0; row < rows; ++row) {
      const float* x = z.data() + row * columns;
      for (std::size_t i = begin; i < end; ++i) {
        const double factor = x[i];
        double* sum = sums.data() + i * columns;
        for (std::size_t j = begin; j < columns; ++j) sum[j] += factor * x[j];
      }
    }
  });
  return sums;
}

/// Solves a w = b in place of b; `a` [n, n] is positive definite, its upper triangle given and overwritten
/// with U, U^T U = a.
void solve(std::vector<double>& a, std::vector<double>& b, std::size_t n, std::size_t width) {
  const auto subtract = [](double factor, const double* from, double* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] -= factor * from[i];
  };
  for (std::size_t k = 0; k < n; ++k) {
    double* row = a.data() + k * n;
    const double root = std::sqrt(row[k]);
    for (std::size_t j = k; j < n; ++j) row[j] /= root;
    for (std::size_t i = k + 1; i < n; ++i) subtract(row[i], row + i, a.data() + i * n + i, n - i);
  }
  for (std::size_t k = 0; k < n; ++k) {  // U^T y = b
    double* y = b.data() + k * width;
    for (std::size_t c = 0; c < width; ++c) y[c] /= a[k * n + k];
    for (std::size_t i = k + 1; i < n; ++i) subtract(a[k * n + i], y, b.data() + i * width, width);
  }
  for (std::size_t k = n; k-- > 0;) {  // U w = y
    double* w = b.data() + k * width;
    for (std::size_t j = k + 1; j < n; ++j) subtract(a[k * n + j], b.data() + j * width, w, width);
    for (std::size_t c = 0; c < width; ++c) w[c] /= a[k * n + k];
  }
}

}  // namespace

LinearProbe LinearProbe::fit(const Tensor& features, std::span<const std::int32_t> labels, int classes,
                             ThreadPool& pool, double ridge) {
  check_rows("probe fit", features, static_cast<std::int64_t>(labels.size()), -1);
  check_labels("probe fit", labels, classes);
  if (features.dim(1) < 1) fail("probe fit", "at least one column", features.shape().str());
  if (!(ridge > 0)) fail("probe fit", "a ridge above 0", std::to_string(ridge));
  LinearProbe probe;
  probe.columns_ = features.dim(1);
  probe.classes_ = classes;
  const std::size_t columns = static_cast<std::size_t>(probe.columns_),
                    width = static_cast<std::size_t>(classes);
  std::vector<std::size_t> used;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] >= 0) used.push_back(row);
  }
  const double share = 1.0 / static_cast<double>(used.size());

  probe.mean_.resize(columns);
  probe.scale_.resize(columns);
  for (const std::size_t row : used) {
    const float* x = features.f32() + row * columns;
    for (std::size_t c = 0; c < columns; ++c) probe.mean_[c] += x[c] * share;
  }
  for (const std::size_t row : used) {
    const float* x = features.f32() + row * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      const double difference = x[c] - probe.mean_[c];
      probe.scale_[c] += difference * difference * share;
    }
  }
  for (std::size_t c = 0; c < columns; ++c) {
    // The deviation that rounding alone gives a constant column is none.
    const double deviation = std::sqrt(probe.scale_[c]);
    probe.scale_[c] = deviation > 1e-7 * std::abs(probe.mean_[c]) ? 1.0 / deviation : 0.0;
  }

  std::vector<float> z(used.size() * columns);
  probe.weights_.resize(columns * width);
  probe.offset_.resize(width);
  std::vector<double> sums(width * columns);  // of the standardized rows of each class
  for (std::size_t i = 0; i < used.size(); ++i) {
    const float* x = features.f32() + used[i] * columns;
    const std::size_t label = static_cast<std::size_t>(labels[used[i]]);
    probe.offset_[label] += share;
    for (std::size_t c = 0; c < columns; ++c) {
      const double value = (x[c] - probe.mean_[c]) * probe.scale_[c];
      z[i * columns + c] = static_cast<float>(value);
      sums[label * columns + c] += value * share;
    }
  }
  std::vector<double> system = gram(z, columns, pool);
  for (double& value : system) value *= share;
  for (std::size_t c = 0; c < columns; ++c) {
    system[c * columns + c] += ridge;
    for (std::size_t label = 0; label < width; ++label) {
      probe.weights_[c * width + label] = sums[label * columns + c];
    }
  }
  solve(system, probe.weights_, columns, width);
  return probe;
}

std::vector<std::int32_t> LinearProbe::predict(const Tensor& features, ThreadPool& pool) const {
  check_rows("probe predict", features, -1, columns_);
  const std::int64_t rows = features.dim(0);
  const std::size_t columns = static_cast<std::size_t>(columns_), width = static_cast<std::size_t>(classes_);
  std::vector<std::int32_t> answers(static_cast<std::size_t>(rows));
  const int blocks = static_cast<int>((rows + kPredictRows - 1) / kPredictRows);
  std::vector<double> scratch(static_cast<std::size_t>(blocks) * width);
  pool.parallel_for(blocks, [&](int block) {
    double* scores = scratch.data() + static_cast<std::size_t>(block) * width;
    const std::int64_t end = std::min<std::int64_t>(rows, (block + std::int64_t{1}) * kPredictRows);
    for (std::int64_t row = std::int64_t{block} * kPredictRows; row < end; ++row) {
      const float* x = features.f32() + row * columns_;
      std::copy(offset_.begin(), offset_.end(), scores);
      for (std::size_t c = 0; c < columns; ++c) {
        const double value = (x[c] - mean_[c]) * scale_[c];
        const double* weights = weights_.data() + c * width;
        for (std::size_t label = 0; label < width; ++label) scores[label] += value * weights[label];
      }
      answers[static_cast<std::size_t>(row)] =
          static_cast<std::int32_t>(std::max_element(scores, scores + width) - scores);
    }
  });
  return answers;
}

TokenProbe TokenProbe::fit(std::span<const std::int32_t> tokens, std::span<const std::int32_t> labels,
                           int codes, int classes, double smoothing) {
  if (tokens.size() != labels.size()) {
    fail("token probe", std::to_string(labels.size()) + " tokens, one for each label",
         std::to_string(tokens.size()));
  }
  check_labels("token probe", labels, classes);
  if (codes < 1 || !(smoothing > 0)) {
    fail("token probe", "codes >= 1 and smoothing > 0",
         std::to_string(codes) + " and " + std::to_string(smoothing));
  }
  const std::size_t width = static_cast<std::size_t>(classes);
  std::vector<double> counts(static_cast<std::size_t>(codes) * width), spread(width);
  double rows = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (labels[i] < 0) continue;
    if (tokens[i] < 0 || tokens[i] >= codes) {
      fail("token probe", "tokens below " + std::to_string(codes), std::to_string(tokens[i]));
    }
    counts[static_cast<std::size_t>(tokens[i]) * width + static_cast<std::size_t>(labels[i])] += 1;
    spread[static_cast<std::size_t>(labels[i])] += 1;
    rows += 1;
  }
  TokenProbe probe;
  for (std::size_t code = 0; code < static_cast<std::size_t>(codes); ++code) {
    double* row = counts.data() + code * width;
    for (std::size_t label = 0; label < width; ++label) row[label] += smoothing * spread[label] / rows;
    probe.answers_.push_back(static_cast<std::int32_t>(std::max_element(row, row + width) - row));
  }
  return probe;
}

std::vector<std::int32_t> TokenProbe::predict(std::span<const std::int32_t> tokens) const {
  std::vector<std::int32_t> answers;
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= answers_.size()) {
      fail("token probe", "tokens below " + std::to_string(answers_.size()), std::to_string(token));
    }
    answers.push_back(answers_[static_cast<std::size_t>(token)]);
  }
  return answers;
}

ProbeScore score(std::span<const std::int32_t> predictions, std::span<const std::int32_t> labels,
                 std::int32_t silence) {
  if (predictions.size() != labels.size()) {
    fail("probe score", std::to_string(labels.size()) + " predictions, one for each label",
         std::to_string(predictions.size()));
  }
  ProbeScore score;
  std::int64_t right = 0, right_without_silence = 0, commonest = 0;
  std::map<std::int32_t, std::int64_t> counts;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    const bool same = predictions[i] == labels[i], speech = labels[i] != silence;
    score.rows += 1;
    score.rows_without_silence += speech ? 1 : 0;
    right += same ? 1 : 0;
    right_without_silence += same && speech ? 1 : 0;
    commonest = std::max(commonest, ++counts[labels[i]]);
  }
  const auto share = [](std::int64_t part, std::int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0.0;
  };
  score.correct = share(right, score.rows);
  score.correct_without_silence = share(right_without_silence, score.rows_without_silence);
  score.commonest = share(commonest, score.rows);
  return score;
}

}  // namespace tessera::train
