// Sums and what is made of them: values against double precision, gradients against differences, the same
// bits however they are computed, behaviour at the edges.
#include "core/autograd/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"

namespace tessera {
namespace {

using test::OperationCase;
using test::random_tensor;
using Values = std::vector<double>;
using Inputs = std::vector<Values>;
using OneInput = Tensor (*)(Tape&, const Tensor&);

double total(const Values& x) {
  return std::accumulate(x.begin(), x.end(), 0.0);
}

/// The rows of a matrix.
std::vector<Values> rows_of(const Values& x, std::size_t width) {
  std::vector<Values> rows;
  for (auto at = x.begin(); at != x.end(); at += static_cast<std::ptrdiff_t>(width)) {
    rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

OperationCase sum_case(const char* name, OneInput f, const Shape& x, const Shape& y,
                       std::function<Values(const Inputs&)> reference) {
  OperationCase c;
  c.name = std::string(name) + " " + x.str();
  c.operation = [f](Tape& tape, std::span<const Tensor> in) { return f(tape, in[0]); };
  c.inputs = {random_tensor(x, 1)};
  c.shape = y;
  c.reference = std::move(reference);
  c.tolerance = 1e-6 * std::max(1.0, std::sqrt(static_cast<double>(x.size())));
  if (x.size() > 1000) {  // sums of many: rounding hides small steps
    c.check.samples = 6;
    c.check.step = 0.5;
  }
  return c;
}

OperationCase sum_of_each(const char* name, OneInput f, const Shape& x, const Shape& y) {
  const auto width = static_cast<std::size_t>(x.size() / y.size());
  return sum_case(name, f, x, y, [width](const Inputs& in) {
    Values sums;
    for (const Values& row : rows_of(in[0], width)) sums.push_back(total(row));
    return sums;
  });
}

std::vector<OperationCase> sums() {
  std::vector<OperationCase> cases;
  for (const Shape& x : {Shape{1}, Shape{2, 3, 5}, Shape{4097}, Shape{3, 50021}, Shape{17, 4096, 2}}) {
    cases.push_back(sum_of_each("sum", ops::sum, x, {1}));
    cases.push_back(sum_case("mean", ops::mean, x, {1}, [](const Inputs& in) {
      return Values{total(in[0]) / static_cast<double>(in[0].size())};
    }));
    cases.push_back(sum_of_each("sum_items", ops::sum_items, x, {x[0]}));
  }
  cases.push_back(sum_of_each("sum_last", ops::sum_last, {7}, {1}));
  cases.push_back(sum_of_each("sum_last", ops::sum_last, {2, 3, 5}, {2, 3}));
  cases.push_back(sum_of_each("sum_last", ops::sum_last, {900, 70}, {900}));
  cases.push_back(sum_of_each("sum_last", ops::sum_last, {2, 9000}, {2}));
  for (const Shape& x : {Shape{5}, Shape{2, 3, 5}, Shape{1000, 1}, Shape{1000, 3}, Shape{3, 2500},
                         Shape{257, 130}, Shape{66000, 2}}) {
    const std::int64_t channels = x[x.rank() - 1];
    cases.push_back(sum_case("sum_rows", ops::sum_rows, x, {channels}, [channels](const Inputs& in) {
      Values sums(static_cast<std::size_t>(channels));
      for (const Values& row : rows_of(in[0], sums.size())) {
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += row[c];
      }
      return sums;
    }));
  }
  return cases;
}

/// y row by row.
std::function<Values(const Inputs&)> by_rows(std::size_t width, std::function<Values(const Values&)> f) {
  return [=](const Inputs& in) {
    Values y;
    for (const Values& row : rows_of(in[0], width)) {
      const Values part = f(row);
      y.insert(y.end(), part.begin(), part.end());
    }
    return y;
  };
}

Values exact_softmax(Values x) {
  const double largest = *std::max_element(x.begin(), x.end());
  for (double& v : x) v = std::exp(v - largest);
  const double sum = total(x);
  for (double& v : x) v /= sum;
  return x;
}

std::vector<OperationCase> normalizations() {
  std::vector<OperationCase> cases;
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{70, 513}}) {
    const std::int64_t channels = shape[shape.rank() - 1];
    const auto width = static_cast<std::size_t>(channels);
    const Tensor x = random_tensor(shape, 2, -1.5f, 2.0f);
    OperationCase c;
    c.shape = shape;
    c.inputs = {x};
    c.check.samples = shape.rank() == 2 ? 20 : 60;
    c.tolerance = 3e-6;

    c.name = "l2_normalize " + shape.str();
    c.operation = [](Tape& tape, std::span<const Tensor> in) {
      return ops::l2_normalize(tape, in[0], 0.01f);
    };
    c.reference = by_rows(width, [](Values row) {
      double square = 0.01;
      for (const double v : row) square += v * v;
      for (double& v : row) v /= std::sqrt(square);
      return row;
    });
    cases.push_back(c);

    c.name = "softmax " + shape.str();
    c.operation = [](Tape& tape, std::span<const Tensor> in) { return ops::softmax(tape, in[0]); };
    c.reference = by_rows(width, exact_softmax);
    cases.push_back(c);

    c.name = "layer_norm " + shape.str();
    c.inputs = {x, random_tensor({channels}, 3), random_tensor({channels}, 4)};
    c.operation = [](Tape& tape, std::span<const Tensor> in) {
      return ops::layer_norm(tape, in[0], in[1], in[2], 1e-3f);
    };
    c.reference = [width](const Inputs& in) {
      return by_rows(width, [&](Values row) {
        const double n = static_cast<double>(width), mean = total(row) / n;
        double variance = 0;
        for (const double v : row) variance += (v - mean) * (v - mean) / n;
        for (std::size_t i = 0; i < width; ++i) {
          row[i] = (row[i] - mean) / std::sqrt(variance + 1e-3) * in[1][i] + in[2][i];
        }
        return row;
      })(in);
    };
    cases.push_back(c);
  }
  return cases;
}

std::vector<OperationCase> cross_entropies() {
  std::vector<OperationCase> cases;
  for (const auto& [rows, classes] : {std::pair{5, 7}, {1, 1000}, {300, 130}}) {
    std::vector<std::int32_t> targets;
    for (int t = 0; t < rows; ++t) targets.push_back(t % 5 == 3 ? -1 : (t * 31 + 2) % classes);
    OperationCase c;
    c.name = "cross_entropy of " + std::to_string(classes);
    c.inputs = {random_tensor({rows, classes}, 5, -4.0f, 4.0f)};
    c.shape = {1};
    c.operation = [targets](Tape& tape, std::span<const Tensor> in) {
      return ops::cross_entropy(tape, in[0], targets);
    };
    c.reference = [targets, classes = classes](const Inputs& in) {
      double sum = 0, counted = 0;
      for (std::size_t t = 0; t < targets.size(); ++t) {
        if (targets[t] < 0) continue;
        const Values row = rows_of(in[0], static_cast<std::size_t>(classes))[t];
        sum -= std::log(exact_softmax(row)[static_cast<std::size_t>(targets[t])]);
        ++counted;
      }
      return Values{sum / counted};
    };
    c.tolerance = 3e-6;
    c.check.step = 0.1;
    c.check.tolerance = rows > 100 ? 0.05 : 5e-3;  // the mean over many rows has few digits for each
    cases.push_back(c);
  }
  return cases;
}

TEST(Reduce, Sums) {
  for (const OperationCase& c : sums()) expect_operation(c);
}

TEST(Reduce, Normalizations) {
  for (const OperationCase& c : normalizations()) expect_operation(c);
}

TEST(Reduce, CrossEntropy) {
  for (const OperationCase& c : cross_entropies()) expect_operation(c);
}

TEST(Reduce, LongSumsKeepTheirAccuracy) {
  ThreadPool pool(2);
  Tape tape(pool);
  Tensor x = Tensor::zeros({1 << 22});
  std::fill_n(x.f32(), x.size(), 0.1f);
  const double want = 0.1f * static_cast<double>(x.size());
  EXPECT_NEAR(*ops::sum(tape, x).f32(), want, 1e-5 * want);
  EXPECT_NEAR(ops::sum_rows(tape, x.reshaped({1 << 20, 4})).f32()[3], want / 4, 1e-5 * want);
}

TEST(Reduce, CrossEntropyFarOut) {
  ThreadPool pool;
  Tape tape(pool);
  Tensor x = Tensor::zeros({1, 3});
  x.f32()[0] = 1000.0f;
  const Tensor logits = parameter(x);
  const std::int32_t target = 1;
  const Tensor loss = ops::cross_entropy(tape, logits, std::span(&target, 1));
  EXPECT_EQ(*loss.f32(), 1000.0f);
  tape.backward(loss);
  EXPECT_EQ(gradient_of(logits).f32()[0], 1.0f);
  EXPECT_EQ(gradient_of(logits).f32()[1], -1.0f);
}

TEST(Reduce, CrossEntropyOfNothing) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor logits = parameter(random_tensor({2, 3}, 1));
  const std::int32_t targets[] = {-1, -1};
  const Tensor loss = ops::cross_entropy(tape, logits, targets);
  EXPECT_EQ(*loss.f32(), 0.0f);
  tape.backward(loss);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(gradient_of(logits).f32()[i], 0.0f);
}

TEST(Reduce, NormalizingNothing) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = parameter(Tensor::zeros({2, 3}));
  const Tensor y = ops::l2_normalize(tape, x);
  EXPECT_EQ(y.f32()[0], 0.0f);
  tape.backward(y, random_tensor({2, 3}, 1));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isfinite(gradient_of(x).f32()[i]));
}

TEST(Reduce, EmptyTensors) {
  ThreadPool pool;
  Tape tape(pool);
  EXPECT_EQ(*ops::sum(tape, Tensor::zeros({0, 4})).f32(), 0.0f);
  EXPECT_EQ(ops::sum_items(tape, Tensor::zeros({0, 4})).shape(), Shape{0});
  EXPECT_EQ(ops::sum_last(tape, Tensor::zeros({2, 0})).f32()[1], 0.0f);
  EXPECT_EQ(ops::sum_rows(tape, Tensor::zeros({0, 4})).f32()[3], 0.0f);
  EXPECT_EQ(ops::softmax(tape, Tensor::zeros({0, 4})).shape(), (Shape{0, 4}));
}

TEST(Reduce, RefusesWhatDoesNotFit) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = Tensor::zeros({2, 3}), scalar = Tensor::zeros({}), three = Tensor::zeros({3});
  EXPECT_THROW(ops::mean(tape, Tensor::zeros({0})), UsageError);
  EXPECT_THROW(ops::sum_items(tape, scalar), UsageError);
  for (const OneInput f : {ops::sum_last, ops::sum_rows, ops::softmax})
    EXPECT_THROW(f(tape, scalar), UsageError);
  for (const OneInput f : {ops::sum, ops::mean, ops::sum_rows}) EXPECT_THROW(f(tape, Tensor()), UsageError);
  EXPECT_THROW(ops::layer_norm(tape, x, Tensor::zeros({2}), three), UsageError);
  EXPECT_THROW(ops::layer_norm(tape, x, three, Tensor::zeros({2})), UsageError);
  const std::vector<std::int32_t> good = {0, 2};
  EXPECT_THROW(ops::cross_entropy(tape, three, good), UsageError);
  EXPECT_THROW(ops::cross_entropy(tape, x, std::vector<std::int32_t>{0}), UsageError);
  EXPECT_THROW(ops::cross_entropy(tape, x, std::vector<std::int32_t>{0, 3}), UsageError);
  EXPECT_THROW(ops::cross_entropy(tape, x, std::vector<std::int32_t>{0, -2}), UsageError);
  EXPECT_NO_THROW(ops::cross_entropy(tape, x, good));
}

}  // namespace
}  // namespace tessera
