#include "train/losses/balancer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/train/loss_signals.h"

namespace tessera::test {
namespace {

using train::Balancer;
using train::BalancerOptions;
using train::NamedLoss;

// The loss sum(direction * output), whose gradient is `direction`.
NamedLoss linear(const std::string& name, const Tensor& direction) {
  NamedLoss loss;
  loss.name = name;
  loss.loss = [direction](Tape& tape, const Tensor& output) {
    return ops::sum(tape, ops::mul(tape, output, direction));
  };
  return loss;
}

Tensor tensor(const Shape& shape, std::initializer_list<float> values) {
  Tensor x = Tensor::zeros(shape);
  std::copy(values.begin(), values.end(), x.f32());
  return x;
}

// What the balancer sends to an output of ones.
std::vector<float> gradient(Balancer& balancer, const std::vector<NamedLoss>& losses, const Shape& shape,
                            float* value = nullptr) {
  OneTape t;
  Tensor ones = Tensor::zeros(shape);
  std::fill_n(ones.f32(), ones.size(), 1.0f);
  const Tensor model = parameter(ones);
  const Tensor output = ops::affine(t.tape, model, 1.0f);
  const Tensor loss = balancer.combine(t.tape, output, losses);
  if (value) *value = *loss.f32();
  t.tape.backward(loss);
  const Tensor g = gradient_of(model);
  return {g.f32(), g.f32() + g.size()};
}

BalancerOptions options(float total_norm, double decay) {
  BalancerOptions o;
  o.total_norm = total_norm;
  o.decay = decay;
  return o;
}

// Norms per clip are 5 and 10 for a, 2 and 0 for b: means 7.5 and 1. With R = 2 and weights 3 and 1 the
// factors are 2 * 3/4 / 7.5 = 0.2 and 2 * 1/4 / 1 = 0.5.
TEST(Balancer, HandComputedExample) {
  Balancer balancer({{"a", 3.0f}, {"b", 1.0f}}, options(2, 0.9));
  const Tensor a = tensor({2, 2}, {3, 4, -6, 8}), b = tensor({2, 2}, {0, 2, 0, 0});
  float value = 0;
  const auto g = gradient(balancer, {linear("a", a), linear("b", b)}, {2, 2}, &value);
  const float want[] = {0.6f, 0.8f + 1.0f, -1.2f, 1.6f};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(g[i], want[i], 1e-6) << i;
  EXPECT_NEAR(value, 3 * 9 + 2, 1e-5);  // the weighted sum of the losses themselves
  ASSERT_EQ(balancer.terms().size(), 2u);
  EXPECT_EQ(balancer.terms()[1].name, "b");
  EXPECT_EQ(balancer.terms()[0].loss, 9.0f);
  EXPECT_EQ(balancer.terms()[0].gradient_norm, 7.5f);
}

TEST(Balancer, AveragesNormsOverSteps) {
  Balancer balancer({{"a", 1.0f}}, options(1, 0.5));
  const float norms[] = {4, 8, 2};
  // 4 | (2 + 8) / 1.5 | (1 + 4 + 2) / 1.75
  const double averages[] = {4, 10 / 1.5, 7 / 1.75};
  for (int step = 0; step < 3; ++step) {
    const auto g = gradient(balancer, {linear("a", tensor({1, 1}, {norms[step]}))}, {1, 1});
    EXPECT_NEAR(g[0], norms[step] / averages[step], 1e-6) << step;
  }
  const auto state = balancer.state();
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].first, "a");
  ASSERT_EQ(state[0].second.shape(), Shape{2});
  EXPECT_EQ(state[0].second.as<double>()[0], 7.0);
  EXPECT_EQ(state[0].second.as<double>()[1], 1.75);
}

TEST(Balancer, ScaleOfALossChangesNothing) {
  const Tensor a = random_tensor({2, 50}, 1), b = random_tensor({2, 50}, 2);
  OneTape t;
  const Tensor large = ops::affine(t.tape, b, 1000.0f);
  Balancer one({{"a", 1.0f}, {"b", 2.0f}}), other({{"a", 1.0f}, {"b", 2.0f}});
  for (int step = 0; step < 3; ++step) {
    const auto want = gradient(one, {linear("a", a), linear("b", b)}, {2, 50});
    const auto got = gradient(other, {linear("a", a), linear("b", large)}, {2, 50});
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6);
  }
}

TEST(Balancer, SavedAndRestoredItGoesOnAsBefore) {
  const std::vector<NamedLoss> first = {linear("a", random_tensor({2, 9}, 1)),
                                        linear("b", random_tensor({2, 9}, 2))};
  const std::vector<NamedLoss> second = {linear("a", random_tensor({2, 9}, 3)),
                                         linear("b", random_tensor({2, 9}, 4))};
  Balancer balancer({{"a", 1.0f}, {"b", 1.0f}}), resumed({{"a", 1.0f}, {"b", 1.0f}});
  gradient(balancer, first, {2, 9});
  const auto fresh = gradient(resumed, second, {2, 9});
  ASSERT_TRUE(resumed.restore(balancer.state()));
  const auto want = gradient(balancer, second, {2, 9});
  EXPECT_EQ(gradient(resumed, second, {2, 9}), want);
  EXPECT_NE(fresh, want);  // the averages do matter

  auto state = balancer.state();
  state[0].first = "c";
  EXPECT_FALSE(resumed.restore(state));
  state = balancer.state();
  state[1].second = Tensor::zeros({2});
  EXPECT_FALSE(resumed.restore(state));
  state.pop_back();
  const auto error = resumed.restore(state);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, ErrorCode::mismatch);
}

TEST(Balancer, ZeroGradientsAndLossesWithoutAny) {
  Balancer balancer({{"none", 1.0f}, {"zero", 1.0f}, {"a", 1.0f}});
  NamedLoss none;
  none.name = "none";
  none.loss = [](Tape&, const Tensor&) { return tensor({1}, {4.0f}); };
  const NamedLoss zero = linear("zero", Tensor::zeros({1, 2}));
  EXPECT_EQ(gradient(balancer, {zero}, {1, 2}), (std::vector<float>{0, 0}));
  float value = 0;
  const auto g = gradient(balancer, {none, zero, linear("a", tensor({1, 2}, {0, 5}))}, {1, 2}, &value);
  EXPECT_EQ(g[0], 0.0f);
  EXPECT_NEAR(g[1], 1.0 / 3, 1e-6);
  EXPECT_EQ(value, 9.0f);
}

TEST(Balancer, WhatIsNotFiniteIsSeenAndForgotten) {
  Balancer balancer({{"a", 1.0f}});
  const NamedLoss a = linear("a", tensor({1, 1}, {5}));
  gradient(balancer, {a}, {1, 1});
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(gradient(balancer, {linear("a", tensor({1, 1}, {infinity}))}, {1, 1})[0]));
  EXPECT_NEAR(gradient(balancer, {a}, {1, 1})[0], 1, 1e-6);
}

// Other losses are added to what combine() returns; a model that is not recorded gets values alone.
TEST(Balancer, JoinsOtherLossesAndPlainEvaluation) {
  OneTape t;
  Balancer balancer({{"a", 2.0f}});
  const std::vector<NamedLoss> losses = {linear("a", tensor({1, 1}, {10}))};
  const Tensor weight = parameter(tensor({1, 1}, {3}));
  const Tensor output = ops::affine(t.tape, weight, 2.0f);
  const Tensor commitment = ops::sum(t.tape, ops::square(t.tape, weight));
  t.tape.backward(ops::add(t.tape, balancer.combine(t.tape, output, losses), commitment));
  EXPECT_NEAR(*gradient_of(weight).f32(), 2 * 1 + 2 * 3, 1e-5);
  EXPECT_EQ(t.tape.recorded(), 0u);

  const Tensor plain = balancer.combine(t.tape, tensor({1, 1}, {3}), losses);
  EXPECT_FALSE(plain.recorded());
  EXPECT_EQ(*plain.f32(), 60.0f);
}

TEST(Balancer, SameBitsForAnyNumberOfThreads) {
  const auto run = [](int threads) {
    ThreadPool pool(threads);
    Tape tape(pool);
    Balancer balancer({{"a", 1.0f}, {"b", 2.0f}});
    const Tensor model = parameter(random_tensor({3, 40000}, 1));
    const std::vector<NamedLoss> losses = {linear("a", random_tensor({3, 40000}, 2)),
                                           linear("b", random_tensor({3, 40000}, 3))};
    tape.backward(balancer.combine(tape, ops::affine(tape, model, 1.0f), losses));
    return values_of(gradient_of(model));
  };
  EXPECT_EQ(run(1), run(3));
}

TEST(Balancer, WrongUseThrows) {
  EXPECT_THROW(Balancer({{"a", 0.0f}}), UsageError);
  EXPECT_THROW(Balancer({{"a", -1.0f}}), UsageError);
  EXPECT_THROW(Balancer({{"a", 1.0f}}, options(0, 0.9)), UsageError);
  EXPECT_THROW(Balancer({{"a", 1.0f}}, options(1, 1)), UsageError);
  OneTape t;
  Balancer balancer({{"a", 1.0f}});
  const Tensor x = parameter(Tensor::zeros({1, 1}));
  const NamedLoss a = linear("a", Tensor::zeros({1, 1}));
  const auto run = [&](const std::vector<NamedLoss>& losses) { balancer.combine(t.tape, x, losses); };
  EXPECT_NO_THROW(run({a}));
  EXPECT_THROW(run({}), UsageError);
  EXPECT_THROW(run({a, a}), UsageError);
  EXPECT_THROW(run({linear("b", Tensor::zeros({1, 1}))}), UsageError);
  NamedLoss shape;
  shape.name = "a";
  shape.loss = [](Tape&, const Tensor& output) { return output; };
  EXPECT_THROW(run({shape}), UsageError);
  EXPECT_THROW(balancer.combine(t.tape, Tensor(), std::vector<NamedLoss>{a}), UsageError);
}

}  // namespace
}  // namespace tessera::test
