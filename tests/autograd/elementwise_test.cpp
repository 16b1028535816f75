// Element-wise operations: values against double precision, gradients against differences, the same bits
// however they are computed, behaviour at the edges.
#include "core/autograd/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"

namespace tessera {
namespace {

using test::GradientCheck;
using test::OperationCase;
using test::random_nonzero;
using test::random_tensor;
using Values = std::vector<double>;
using Inputs = std::vector<Values>;

std::function<Values(const Inputs&)> each(double (*f)(double)) {
  return [f](const Inputs& in) {
    Values y;
    for (const double x : in[0]) y.push_back(f(x));
    return y;
  };
}

/// y[i] = f(a[i], b[which of b belongs to i])
std::function<Values(const Inputs&)> pairs(double (*f)(double, double),
                                           std::size_t (*which)(std::size_t i, std::size_t a,
                                                                std::size_t b)) {
  return [=](const Inputs& in) {
    Values y;
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      y.push_back(f(in[0][i], in[1][which(i, in[0].size(), in[1].size())]));
    }
    return y;
  };
}

std::size_t same(std::size_t i, std::size_t, std::size_t) {
  return i;
}
std::size_t column(std::size_t i, std::size_t, std::size_t columns) {
  return i % columns;
}
std::size_t item(std::size_t i, std::size_t size, std::size_t items) {
  return i / (size / items);
}
double plus(double a, double b) {
  return a + b;
}
double times(double a, double b) {
  return a * b;
}
double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

using TwoInputs = Tensor (*)(Tape&, const Tensor&, const Tensor&);

OperationCase of_two(const char* name, TwoInputs f, const Tensor& a, const Tensor& b,
                     std::function<Values(const Inputs&)> reference) {
  OperationCase c;
  c.name = std::string(name) + " " + a.shape().str();
  c.operation = [f](Tape& tape, std::span<const Tensor> in) { return f(tape, in[0], in[1]); };
  c.inputs = {a, b};
  c.shape = a.shape();
  c.reference = std::move(reference);
  return c;
}

OperationCase of_one(const char* name, std::function<Tensor(Tape&, const Tensor&)> f, const Tensor& x,
                     std::function<Values(const Inputs&)> reference) {
  OperationCase c;
  c.name = std::string(name) + " " + x.shape().str();
  c.operation = [f = std::move(f)](Tape& tape, std::span<const Tensor> in) { return f(tape, in[0]); };
  c.inputs = {x};
  c.shape = x.shape();
  c.reference = std::move(reference);
  return c;
}

/// With fewer elements moved, for tensors of several blocks.
OperationCase large(OperationCase c) {
  c.check.samples = 6;
  return c;
}

std::vector<OperationCase> arithmetic() {
  const Shape small{2, 3, 7}, two_blocks{5, 13, 601};
  std::vector<OperationCase> cases;
  for (const Shape& shape : {small, two_blocks}) {
    const std::int64_t items = shape[0], channels = shape[2];
    const Tensor a = random_tensor(shape, 1), b = random_nonzero(shape, 2, 0.3f, 1.5f);
    const auto take = [&](OperationCase c) { cases.push_back(shape == small ? c : large(c)); };
    take(of_two("add", ops::add, a, b, pairs(plus, same)));
    take(of_two("sub", ops::sub, a, b, pairs([](double x, double y) { return x - y; }, same)));
    take(of_two("mul", ops::mul, a, b, pairs(times, same)));
    take(of_two("div", ops::div, a, b, pairs([](double x, double y) { return x / y; }, same)));
    take(of_two("add_rows", ops::add_rows, a, random_tensor({channels}, 3), pairs(plus, column)));
    take(of_two("mul_rows", ops::mul_rows, a, random_tensor({channels}, 4), pairs(times, column)));
    take(of_two("mul_items", ops::mul_items, a, random_tensor({items}, 5), pairs(times, item)));
    take(of_one(
        "affine", [](Tape& tape, const Tensor& x) { return ops::affine(tape, x, -1.5f, 0.25f); }, a,
        each([](double x) { return -1.5 * x + 0.25; })));
  }
  // Narrow rows, one column, a single wide row, items longer than a block.
  for (const std::int64_t channels : {1, 2, 300}) {
    const Tensor x = random_tensor({700, channels}, 6);
    cases.push_back(
        large(of_two("add_rows", ops::add_rows, x, random_tensor({channels}, 7), pairs(plus, column))));
    cases.push_back(
        large(of_two("mul_rows", ops::mul_rows, x, random_tensor({channels}, 7), pairs(times, column))));
  }
  cases.push_back(large(of_two("mul_rows", ops::mul_rows, random_tensor({40000}, 8),
                               random_tensor({40000}, 9), pairs(times, column))));
  cases.push_back(large(of_two("mul_items", ops::mul_items, random_tensor({2, 40001}, 8),
                               random_tensor({2}, 9), pairs(times, item))));
  cases.push_back(
      of_two("mul_items", ops::mul_items, random_tensor({5}, 8), random_tensor({5}, 9), pairs(times, item)));
  return cases;
}

std::vector<OperationCase> functions() {
  const Tensor x = random_nonzero({3, 37}, 11, 0.05f, 3.0f),
               positive = random_tensor({3, 37}, 12, 0.3f, 3.0f);
  struct Row {
    const char* name;
    Activation f;
    double (*reference)(double);
    Tensor input;
  };
  const Row rows[] = {
      {"none", Activation::none, [](double v) { return v; }, x},
      {"elu", Activation::elu, [](double v) { return v > 0 ? v : std::expm1(v); }, x},
      {"gelu", Activation::gelu, [](double v) { return v / 2 * std::erfc(-v / std::numbers::sqrt2); }, x},
      {"gelu_tanh", Activation::gelu_tanh,
       [](double v) {
         return v * logistic(2 * std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v));
       },
       x},
      {"silu", Activation::silu, [](double v) { return v * logistic(v); }, x},
      {"relu", Activation::relu, [](double v) { return std::max(v, 0.0); }, x},
      {"leaky_relu", Activation::leaky_relu, [](double v) { return v > 0 ? v : 0.01 * v; }, x},
      {"tanh", Activation::tanh, [](double v) { return std::tanh(v); }, x},
      {"sigmoid", Activation::sigmoid, logistic, x},
      {"exp", Activation::exp, [](double v) { return std::exp(v); }, x},
      {"sin", Activation::sin, [](double v) { return std::sin(v); }, x},
      {"cos", Activation::cos, [](double v) { return std::cos(v); }, x},
      {"erf", Activation::erf, [](double v) { return std::erf(v); }, x},
      {"log", Activation::log, [](double v) { return std::log(v); }, positive},
      {"signed_sqrt", Activation::signed_sqrt,
       [](double v) { return std::copysign(std::sqrt(std::abs(v) + 1e-9), v); },
       random_nonzero({3, 37}, 13, 0.3f, 3.0f)},
      {"signed_square", Activation::signed_square, [](double v) { return v * std::abs(v); }, x},
  };
  std::vector<OperationCase> cases;
  for (const Row& row : rows) {
    const auto f = [f = row.f](Tape& tape, const Tensor& v) { return ops::activate(tape, f, v); };
    cases.push_back(of_one(row.name, f, row.input, each(row.reference)));
  }
  const Tensor long_one = random_nonzero({70001}, 14, 0.05f, 3.0f);
  cases.push_back(large(of_one(
      "elu", [](Tape& tape, const Tensor& v) { return ops::activate(tape, Activation::elu, v); }, long_one,
      each([](double v) { return v > 0 ? v : std::expm1(v); }))));
  cases.push_back(of_one(
      "leaky_relu 0.2", [](Tape& tape, const Tensor& v) { return ops::leaky_relu(tape, v, 0.2f); }, x,
      each([](double v) { return v > 0 ? v : 0.2f * v; })));
  cases.push_back(of_one(
      "leaky_relu -0.5", [](Tape& tape, const Tensor& v) { return ops::leaky_relu(tape, v, -0.5f); }, x,
      each([](double v) { return v > 0 ? v : -0.5 * v; })));
  cases.push_back(of_one("abs", ops::abs, x, each([](double v) { return std::abs(v); })));
  cases.push_back(of_one("square", ops::square, x, each([](double v) { return v * v; })));
  cases.push_back(of_one(
      "sqrt", [](Tape& tape, const Tensor& v) { return ops::sqrt(tape, v, 0.125f); }, positive,
      each([](double v) { return std::sqrt(v + 0.125); })));
  cases.push_back(of_one(
      "at_least", [](Tape& tape, const Tensor& v) { return ops::at_least(tape, v, 0.0f); }, x,
      each([](double v) { return std::max(v, 0.0); })));
  return cases;
}

TEST(Elementwise, Arithmetic) {
  for (const OperationCase& c : arithmetic()) expect_operation(c);
}

TEST(Elementwise, Functions) {
  for (const OperationCase& c : functions()) expect_operation(c);
}

/// d f(x) / d x
float slope_at(const std::function<Tensor(Tape&, const Tensor&)>& f, float x) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor p = parameter(Tensor::view(&x, {1}));
  tape.backward(f(tape, p));
  return gradient_of(p).f32()[0];
}

TEST(Elementwise, SlopesAtZero) {
  const auto activation = [](Activation f) {
    return [f](Tape& tape, const Tensor& v) { return ops::activate(tape, f, v); };
  };
  EXPECT_EQ(slope_at(activation(Activation::elu), 0.0f), 1.0f);
  EXPECT_EQ(slope_at(activation(Activation::relu), 0.0f), 0.0f);
  EXPECT_NEAR(slope_at(activation(Activation::signed_sqrt), 0.0f), 0.5 / std::sqrt(1e-9), 0.01);
  EXPECT_NEAR(slope_at(activation(Activation::signed_sqrt), 1e-9f), 0.5 / std::sqrt(2e-9), 0.01);
  EXPECT_EQ(slope_at(activation(Activation::signed_square), 0.0f), 0.0f);
  EXPECT_EQ(slope_at(ops::abs, 0.0f), 0.0f);
  EXPECT_NEAR(slope_at([](Tape& tape, const Tensor& v) { return ops::sqrt(tape, v, 1e-4f); }, 0.0f), 50.0f,
              1e-4);
}

TEST(Elementwise, TheFloorTakesTheGradient) {
  const auto floor = [](Tape& tape, const Tensor& v) { return ops::at_least(tape, v, 0.5f); };
  EXPECT_EQ(slope_at(floor, 0.4f), 0.0f);
  EXPECT_EQ(slope_at(floor, 0.5f), 0.0f);
  EXPECT_EQ(slope_at(floor, 0.6f), 1.0f);
}

TEST(Elementwise, SlopesFarOut) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  struct Row {
    Activation f;
    float low, high;
  };
  for (const Row& row : {Row{Activation::elu, 0, 1},
                         {Activation::gelu, 0, 1},
                         {Activation::gelu_tanh, 0, 1},
                         {Activation::silu, 0, 1},
                         {Activation::tanh, 0, 0},
                         {Activation::sigmoid, 0, 0},
                         {Activation::erf, 0, 0}}) {
    for (const float x : {50.0f, 1e4f, 1e30f, kInf}) {
      const auto f = [&](Tape& tape, const Tensor& v) { return ops::activate(tape, row.f, v); };
      EXPECT_NEAR(slope_at(f, x), row.high, 1e-6) << static_cast<int>(row.f) << " at " << x;
      EXPECT_NEAR(slope_at(f, -x), row.low, 1e-6) << static_cast<int>(row.f) << " at " << -x;
    }
  }
}

TEST(Elementwise, NaNIsNotHidden) {
  ThreadPool pool;
  Tape tape(pool);
  float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::view(&nan, {1});
  EXPECT_TRUE(std::isnan(ops::at_least(tape, x, 0.0f).f32()[0]));
  EXPECT_TRUE(std::isnan(ops::abs(tape, x).f32()[0]));
  EXPECT_TRUE(std::isnan(ops::leaky_relu(tape, x, 0.1f).f32()[0]));
  EXPECT_TRUE(std::isnan(slope_at(ops::abs, nan)));
}

TEST(Elementwise, AddToIsInPlace) {
  ThreadPool pool(2);
  Tape tape(pool);
  const Tensor x = random_tensor({40000}, 1);
  Tensor y = random_tensor({40000}, 2);
  const Tensor want = ops::add(tape, x, y);
  ops::add_to(tape, x, y);
  test::expect_same_bits(y, want, "add_to");
}

TEST(Elementwise, EmptyTensors) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor p = parameter(Tensor::zeros({0, 3}));
  const Tensor y = ops::mul_rows(tape, ops::mul(tape, p, p), Tensor::zeros({3}));
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  tape.backward(y, Tensor::zeros({0, 3}));
  EXPECT_EQ(gradient_of(p).shape(), (Shape{0, 3}));
}

TEST(Elementwise, RefusesWhatDoesNotFit) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3, 2}), scalar = Tensor::zeros({});
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { ops::add(tape, a, b); }), "[add] expected b [2, 3], got [3, 2]");
  EXPECT_EQ(message([&] { ops::add_rows(tape, a, Tensor::zeros({2})); }),
            "[add_rows] expected bias [3], got [2]");
  EXPECT_EQ(message([&] { ops::mul_items(tape, a, Tensor::zeros({3})); }),
            "[mul_items] expected factor [2], got [3]");
  EXPECT_EQ(message([&] { ops::square(tape, Tensor()); }), "[square] expected x, got an undefined tensor");
  EXPECT_EQ(message([&] { ops::abs(tape, Tensor::zeros({2}, DType::i32)); }),
            "[abs] expected x in f32, got i32");
  for (const TwoInputs f : {ops::sub, ops::mul, ops::div}) EXPECT_THROW(f(tape, a, b), UsageError);
  EXPECT_THROW(ops::mul_rows(tape, scalar, scalar), UsageError);
  EXPECT_THROW(ops::mul_items(tape, scalar, scalar), UsageError);
  Tensor y = Tensor::zeros({3});
  EXPECT_THROW(ops::add_to(tape, a, y), UsageError);
}

}  // namespace
}  // namespace tessera
