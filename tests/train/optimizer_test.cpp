#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/random.h"
#include "tests/train/run_support.h"
#include "train/adamw_cpu.h"

namespace tessera::train {
namespace {

using test::floats_of;
using test::set_gradient;
using test::tensor_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Pair {
  Parameters parameters;
  Tensor matrix = parameters.add("layer.weight", tensor_of({2, 3}, {0.5f, -1.25f, 2, 0, 3, -0.75f}));
  Tensor bias = parameters.add("layer.bias", tensor_of({3}, {1, -2, 0.25f}));
};

AdamWOptions quick() {
  AdamWOptions options;
  options.beta1 = 0.8;
  options.beta2 = 0.99;
  options.weight_decay = 0.1;
  return options;
}

void expect_near(const Tensor& tensor, const std::vector<float>& expected, float tolerance = 2e-7f) {
  const std::vector<float> values = floats_of(tensor);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i]))) << i;
  }
}

// Expected numbers: torch.optim.AdamW 2.9, weight decay 0.1 for the matrix and 0 for the bias.
TEST(AdamW, ThreeStepsAsTorch) {
  ThreadPool pool(2);
  Pair p;
  AdamW optimizer(p.parameters.items(), quick());
  const std::vector<std::vector<float>> matrix_gradients = {{0.1f, -0.2f, 0.3f, 1, -4, 0},
                                                            {-0.3f, 0.25f, 0.6f, 0.5f, 2, 0.001f},
                                                            {0.05f, 0, -0.9f, 1e-4f, 1, -0.5f}};
  const std::vector<std::vector<float>> bias_gradients = {{1, -2, 3}, {0.5f, 0.25f, -1}, {0, 0.125f, 2}};
  const std::vector<std::vector<float>> matrix_values = {
      {0.489500016f, -1.23874998f, 1.98800004f, -0.0100000007f, 3.00699997f, -0.749249995f},
      {0.4944655f, -1.23971868f, 1.97618866f, -0.019139275f, 3.00610447f, -0.756337702f},
      {0.496765822f, -1.24007857f, 1.97565031f, -0.0257505774f, 3.00303626f, -0.748529613f}};
  const std::vector<std::vector<float>> bias_values = {{0.99000001f, -1.99000001f, 0.239999995f},
                                                       {0.980850756f, -1.98472476f, 0.236514658f},
                                                       {0.974220932f, -1.98135126f, 0.23058486f}};
  for (std::size_t i = 0; i < 3; ++i) {
    set_gradient(pool, p.matrix, matrix_gradients[i]);
    set_gradient(pool, p.bias, bias_gradients[i]);
    ASSERT_TRUE(optimizer.step(pool, 0.01));
    expect_near(p.matrix, matrix_values[i]);
    expect_near(p.bias, bias_values[i]);
  }
  const NamedTensors state = optimizer.save();
  EXPECT_EQ(state[0].first, "layer.weight.mean");
  expect_near(state[0].second,
              {-0.0252000019f, 0.014399996f, -0.04559998f, 0.20802002f, 0.0079999957f, -0.09984f});
  expect_near(state[1].second, {0.00101401f, 0.00101079f, 0.01254609f, 0.012276f, 0.206416f, 0.00250001f});
  EXPECT_EQ(*state[2].second.as<std::int64_t>(), 3);
}

// Against torch.nn.utils.clip_grad_norm_: norm 5.580322265625. Clipping by c equals gradients divided by
// norm / c.
TEST(AdamW, ClipsByTheNormOfAll) {
  ThreadPool pool(2);
  Pair clipped, divided;
  AdamW a(clipped.parameters.items(), quick()), b(divided.parameters.items(), quick());
  set_gradient(pool, clipped.matrix, {0.1f, -0.2f, 0.3f, 1, -4, 0});
  set_gradient(pool, clipped.bias, {1, -2, 3});
  EXPECT_NEAR(gradient_norm(clipped.parameters.items(), pool).value, 5.580322265625, 1e-6);
  const auto norm = a.step(pool, 0.01, 2.0);
  ASSERT_TRUE(norm);
  EXPECT_NEAR(*norm, 5.580322265625, 1e-6);
  set_gradient(pool, divided.matrix,
               {0.035840221f, -0.071680441f, 0.107520662f, 0.358402193f, -1.43360877f, 0});
  set_gradient(pool, divided.bias, {0.358402193f, -0.716804385f, 1.075206518f});
  ASSERT_TRUE(b.step(pool, 0.01, 2.01));  // below the limit: left as they are
  for (std::size_t i = 0; i < a.save().size(); ++i) {
    if (a.save()[i].second.dtype() == DType::f32) {
      expect_near(a.save()[i].second, floats_of(b.save()[i].second), 1e-6f);
    }
  }
}

TEST(AdamW, LeavesParametersWithoutGradientAlone) {
  ThreadPool pool;
  Pair p;
  AdamW optimizer(p.parameters.items(), quick());
  const auto before = floats_of(p.matrix);
  set_gradient(pool, p.bias, {1, 1, 1});
  ASSERT_TRUE(optimizer.step(pool, 0.01));
  EXPECT_EQ(floats_of(p.matrix), before);
  EXPECT_EQ(*optimizer.save()[2].second.as<std::int64_t>(), 0);
  EXPECT_NE(floats_of(p.bias)[0], 1.0f);
}

TEST(AdamW, NamesTheFirstBadGradientAndDoesNotStep) {
  ThreadPool pool;
  Pair p;
  AdamW optimizer(p.parameters.items(), quick());
  const auto before = floats_of(p.matrix);
  set_gradient(pool, p.matrix, {1, 1, 1, 1, 1, 1});
  set_gradient(pool, p.bias, {1, kNaN, 1});
  const auto step = optimizer.step(pool, 0.01, 1.0);
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().message, "the gradient of \"layer.bias\" is not finite");
  EXPECT_EQ(floats_of(p.matrix), before);
  EXPECT_EQ(*optimizer.save()[2].second.as<std::int64_t>(), 0);
}

TEST(AdamW, GroupsScaleRateAndDecay) {
  ThreadPool pool;
  Parameters parameters;
  const Tensor encoder = parameters.add("encoder.w", tensor_of({1, 1}, {1}));
  const Tensor decoder = parameters.add("decoder.w", tensor_of({1, 1}, {1}));
  AdamWOptions options;
  options.weight_decay = 0.5;
  options.groups = {{"encoder.", 0.1, 0.0}};
  AdamW optimizer(parameters.items(), options);
  set_gradient(pool, encoder, {1});
  set_gradient(pool, decoder, {1});
  ASSERT_TRUE(optimizer.step(pool, 0.01));
  // The first step of Adam is the learning rate itself.
  EXPECT_NEAR(*encoder.f32(), 1 - 0.001, 1e-6);
  EXPECT_NEAR(*decoder.f32(), 1 * (1 - 0.01 * 0.5) - 0.01, 1e-6);
}

TEST(AdamW, SameBitsForAnyNumberOfThreadsAndAfterRestoring) {
  const std::size_t count = 16384 * 2 + 77;
  const auto start = test::random_floats(count, 1);
  std::vector<std::vector<float>> ends;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Parameters parameters;
    const Tensor w = parameters.add("w", tensor_of({1, static_cast<std::int64_t>(count)}, start));
    auto optimizer = std::make_unique<AdamW>(parameters.items(), quick());
    for (std::uint64_t i = 0; i < 4; ++i) {
      set_gradient(pool, w, test::random_floats(count, 10 + i, 3.0f));
      ASSERT_TRUE(optimizer->step(pool, 0.003, 1.0));
      if (threads == 3 && i == 1) {
        auto again = std::make_unique<AdamW>(parameters.items(), quick());
        ASSERT_TRUE(again->restore(optimizer->save()));
        optimizer = std::move(again);
      }
    }
    ends.push_back(floats_of(w));
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_NE(ends[0], start);
}

TEST(AdamW, RefusesStateThatDoesNotFit) {
  Pair p;
  AdamW optimizer(p.parameters.items(), quick());
  NamedTensors state = optimizer.save();
  state[0].second = Tensor::zeros({3, 2});
  EXPECT_EQ(optimizer.restore(state).error().message,
            "state of the optimizer: expected \"layer.weight.mean\" as f32 [2, 3], got f32 [3, 2]");
  state.erase(state.begin());
  EXPECT_EQ(optimizer.restore(state).error().message,
            "state of the optimizer: expected a tensor \"layer.weight.mean\", got none");
  state = optimizer.save();
  state.emplace_back("other.mean", Tensor::zeros({1}));
  EXPECT_EQ(optimizer.restore(state).error().code, ErrorCode::mismatch);
}

TEST(AdamW, RefusesOptionsThatCannotWork) {
  Pair p;
  AdamWOptions options;
  options.beta2 = 1.0;
  EXPECT_THROW(AdamW(p.parameters.items(), options), UsageError);
  options = {};
  options.epsilon = 0;
  EXPECT_THROW(AdamW(p.parameters.items(), options), UsageError);
}

// Every length, so that whole vectors and what is left over are covered, against the formula.
TEST(AdamWUpdate, MatchesTheFormulaForEveryLength) {
  AdamWUpdate u;
  u.gradient_factor = 0.5f;
  u.mean_rate = 0.1f;
  u.square_keep = 0.999f;
  u.square_rate = 0.001f;
  u.value_keep = 0.98f;
  u.step = 0.02f;
  u.root_factor = 3.0f;
  u.epsilon = 1e-8f;
  for (std::size_t n = 0; n < 40; ++n) {
    const auto g = test::random_floats(n, 1), m0 = test::random_floats(n, 2), v0 = test::random_floats(n, 4);
    auto m = m0, v = v0, s = std::vector<float>(n, 0.25f);
    adamw_update(u, g.data(), m.data(), s.data(), v.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      const float scaled = 0.5f * g[i];
      EXPECT_EQ(m[i], m0[i] + 0.1f * (scaled - m0[i]));
      EXPECT_EQ(s[i], 0.999f * 0.25f + 0.001f * scaled * scaled);
      EXPECT_EQ(v[i], v0[i] * 0.98f - 0.02f * m[i] / (std::sqrt(s[i]) * 3.0f + 1e-8f));
    }
  }
}

}  // namespace
}  // namespace tessera::train
