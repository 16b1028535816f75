// Discriminators: gradients against differences, frozen weights, threads and batches, wrong use, and that one
// learns. (Values: discriminator_values_test.cpp.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "core/error.h"
#include "core/exact_math.h"
#include "core/random.h"
#include "tests/autograd/gradient_check.h"
#include "tests/random.h"
#include "train/discriminators/adversarial.h"
#include "train/discriminators/compression.h"
#include "train/discriminators/period_discriminator.h"
#include "train/discriminators/stft_discriminator.h"

namespace tessera::train {
namespace {

constexpr double kPi = 3.141592653589793;

StftDiscriminatorConfig small_stft() {
  StftDiscriminatorConfig config;
  config.windows = {32, 16};
  config.channels = 3;
  config.dilations = {1, 2};
  return config;
}

PeriodDiscriminatorConfig small_period() {
  PeriodDiscriminatorConfig config;
  config.periods = {2, 5};
  config.channels = 3;
  config.layers = 2;
  return config;
}

Tensor sound(std::int64_t batch, std::int64_t samples, std::uint64_t seed) {
  Tensor x = Tensor::zeros({batch, samples});
  const std::vector<float> values = test::random_floats(static_cast<std::size_t>(x.size()), seed, 0.5f);
  std::copy(values.begin(), values.end(), x.f32());
  return x;
}

std::vector<float> values_of(const Tensor& x) {
  return {x.f32(), x.f32() + x.size()};
}

// A kind of discriminator, small, with biases that are not zero.
struct Case {
  std::string name;
  std::function<std::unique_ptr<Discriminator>(Parameters&)> make;
};

std::unique_ptr<Discriminator> make(const Case& kind, Parameters& parameters) {
  std::unique_ptr<Discriminator> discriminator = kind.make(parameters);
  for (const Parameter& item : parameters.items()) {
    Tensor values = item.tensor;
    if (item.name.ends_with(".bias"))
      for (std::int64_t i = 0; i < values.size(); ++i) values.f32()[i] = 0.05f * static_cast<float>(i + 1);
  }
  return discriminator;
}

std::vector<Case> all_kinds() {
  const auto stft = [](Parameters& p) {
    return std::make_unique<StftDiscriminator>(p, "stft", small_stft());
  };
  const auto banded = [](Parameters& p) {
    StftDiscriminatorConfig config = small_stft();
    config.bands = {0.25, 0.5, 1.0};
    return std::make_unique<StftDiscriminator>(p, "stft", config);
  };
  const auto compressed = [](Parameters& p) {
    StftDiscriminatorConfig config = small_stft();
    config.compressed = true;
    return std::make_unique<StftDiscriminator>(p, "stft", config);
  };
  const auto period = [](Parameters& p) {
    return std::make_unique<PeriodDiscriminator>(p, "period", small_period());
  };
  const auto jury = [stft, period](Parameters& p) {
    auto both = std::make_unique<Jury>();
    both->add(stft(p));
    both->add(period(p));
    return both;
  };
  return {{"stft", stft}, {"banded", banded}, {"compressed", compressed}, {"period", period}, {"jury", jury}};
}

class DiscriminatorTest : public testing::TestWithParam<Case> {
 protected:
  // A scalar that depends on every score and feature.
  static Tensor loss_of(Tape& tape, const Judgement& judgement) {
    Tensor loss = generator_loss(tape, judgement, AdversarialLoss::least_squares);
    for (const auto& list : judgement.features)
      for (const Tensor& feature : list)
        loss = ops::add(tape, loss, ops::mean(tape, ops::square(tape, feature)));
    return loss;
  }

  // The same in double precision: differences of it can be small.
  static double value_of(const Judgement& judgement) {
    const auto mean_square = [](const Tensor& x, double target) {
      double sum = 0;
      for (const float value : values_of(x)) sum += (value - target) * (value - target);
      return sum / static_cast<double>(x.size());
    };
    double value = 0;
    for (const Tensor& scores : judgement.scores)
      value += mean_square(scores, 1.0) / static_cast<double>(judgement.scores.size());
    for (const auto& list : judgement.features)
      for (const Tensor& feature : list) value += mean_square(feature, 0.0);
    return value;
  }

  ThreadPool pool_;
  Tape tape_{pool_};
  Parameters parameters_{3};
  std::unique_ptr<Discriminator> discriminator_ = make(GetParam(), parameters_);
};

TEST_P(DiscriminatorTest, GradientsAreTheSlopes) {
  const Tensor x = parameter(sound(2, 75, 5));
  tape_.backward(loss_of(tape_, discriminator_->judge(tape_, x)));
  std::vector<Tensor> leaves{x};
  for (const Parameter& item : parameters_.items()) leaves.push_back(item.tensor);
  Random random(11);
  for (const Tensor& leaf : leaves) {
    ASSERT_TRUE(gradient_of(leaf).defined());
    const std::vector<float> before = values_of(leaf);
    std::vector<float> direction(before.size());
    double expected = 0, length = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      direction[i] = random.normal() + gradient_of(leaf).f32()[i];  // not orthogonal to it by chance
      expected += static_cast<double>(direction[i]) * gradient_of(leaf).f32()[i];
      length += static_cast<double>(direction[i]) * direction[i];
    }
    const auto loss_at = [&](double step) {
      Tensor moved = leaf;
      for (std::size_t i = 0; i < before.size(); ++i)
        moved.f32()[i] = static_cast<float>(before[i] + step * direction[i]);
      const Tape::Pause pause(tape_);
      const double loss = value_of(discriminator_->judge(tape_, x));
      std::copy(before.begin(), before.end(), moved.f32());
      return loss;
    };
    const double step = 3e-4 / std::sqrt(length), slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope, expected, 3e-3 * (std::abs(expected) + 0.1 * std::sqrt(length))) << leaf.shape().str();
  }
}

TEST_P(DiscriminatorTest, FrozenWeightsGetNoGradientAndPassTheSameOn) {
  const Tensor x = parameter(sound(1, 90, 6));
  tape_.backward(loss_of(tape_, discriminator_->judge(tape_, x)));
  const std::vector<float> expected = values_of(gradient_of(x));
  clear_gradient(x);
  parameters_.clear_gradients();
  tape_.backward(loss_of(tape_, discriminator_->judge(tape_, x, Mode::frozen)));
  EXPECT_EQ(values_of(gradient_of(x)), expected);
  for (const Parameter& item : parameters_.items())
    EXPECT_FALSE(gradient_of(item.tensor).defined()) << item.name;
}

TEST_P(DiscriminatorTest, NothingIsRecordedForTheFeaturesOfARecording) {
  const Judgement judgement = discriminator_->judge(tape_, sound(1, 90, 6), Mode::frozen);
  EXPECT_EQ(tape_.recorded(), 0u);
  for (const Tensor& scores : judgement.scores) EXPECT_FALSE(scores.recorded());
}

TEST_P(DiscriminatorTest, ThreadsChangeNothing) {
  const auto run = [&](int threads) {
    ThreadPool pool(threads);
    Tape tape(pool);
    const Tensor x = parameter(sound(2, 333, 7));
    const Tensor loss = loss_of(tape, discriminator_->judge(tape, x));
    std::vector<float> all{*loss.f32()};
    parameters_.clear_gradients();
    tape.backward(loss);
    const auto append = [&](const Tensor& values) {
      all.insert(all.end(), values.f32(), values.f32() + values.size());
    };
    append(gradient_of(x));
    for (const Parameter& item : parameters_.items()) append(gradient_of(item.tensor));
    return all;
  };
  EXPECT_EQ(run(1), run(3));
}

TEST_P(DiscriminatorTest, EachOfABatchIsJudgedAlone) {
  const Tensor x = sound(3, 101, 8);
  Tensor second = Tensor::zeros({1, 101});
  std::copy_n(x.f32() + 101, 101, second.f32());
  const Judgement all = discriminator_->judge(tape_, x), one = discriminator_->judge(tape_, second);
  ASSERT_EQ(all.scores.size(), one.scores.size());
  for (std::size_t i = 0; i < one.scores.size(); ++i) {
    const std::vector<float> expected = values_of(one.scores[i]), got = values_of(all.scores[i]);
    ASSERT_EQ(got.size(), 3 * expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           got.begin() + static_cast<std::ptrdiff_t>(expected.size())));
  }
}

TEST_P(DiscriminatorTest, WrongInputThrows) {
  EXPECT_THROW(discriminator_->judge(tape_, Tensor::zeros({90})), UsageError);
  EXPECT_THROW(discriminator_->judge(tape_, Tensor::zeros({1, 90, 1})), UsageError);
  EXPECT_THROW(discriminator_->judge(tape_, Tensor::zeros({1, 4})), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DiscriminatorTest, testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(Discriminators, DefaultsTakeOddLengths) {
  ThreadPool pool;
  Tape tape(pool);
  Parameters parameters;
  Jury jury;
  jury.add(std::make_unique<StftDiscriminator>(parameters, "stft"));
  jury.add(std::make_unique<PeriodDiscriminator>(parameters, "period"));
  for (const std::int64_t samples : {512, 1999, 2048}) {
    const Judgement judgement = jury.judge(tape, sound(1, samples, 1), Mode::frozen);
    ASSERT_EQ(judgement.scores.size(), 8u);
    ASSERT_EQ(judgement.features.size(), 8u);
    for (const Tensor& scores : judgement.scores) {
      EXPECT_GT(scores.size(), 0);
      for (const float score : values_of(scores)) ASSERT_TRUE(std::isfinite(score));
    }
  }
}

TEST(Discriminators, ConfigurationsThatCannotWorkThrow) {
  const auto stft = [](auto change) {
    StftDiscriminatorConfig config;
    change(config);
    Parameters parameters;
    const StftDiscriminator discriminator(parameters, "d", config);
  };
  EXPECT_NO_THROW(stft([](auto&) {}));
  EXPECT_THROW(stft([](auto& c) { c.windows = {}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.windows = {502}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.windows = {-512}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.windows = {512, 512}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.channels = 0; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.dilations = {0}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.bands = {}; }), UsageError);
  EXPECT_NO_THROW(stft([](auto& c) { c.bands = {0.5}; }));
  EXPECT_THROW(stft([](auto& c) { c.bands = {1.5}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.bands = {0.5, 0.4, 1.0}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.bands = {0.5, std::nan(""), 1.0}; }), UsageError);
  EXPECT_THROW(stft([](auto& c) { c.bands = {0.001, 1.0}; }), UsageError);
  const auto period = [](auto change) {
    PeriodDiscriminatorConfig config;
    change(config);
    Parameters parameters;
    const PeriodDiscriminator discriminator(parameters, "d", config);
  };
  EXPECT_NO_THROW(period([](auto&) {}));
  EXPECT_THROW(period([](auto& c) { c.periods = {}; }), UsageError);
  EXPECT_THROW(period([](auto& c) { c.periods = {0}; }), UsageError);
  EXPECT_THROW(period([](auto& c) { c.periods = {3, 3}; }), UsageError);
  EXPECT_THROW(period([](auto& c) { c.channels = -1; }), UsageError);
  EXPECT_THROW(period([](auto& c) { c.layers = 0; }), UsageError);
}

// ---- Compression ----

TEST(CompressMagnitude, KeepsThePhaseAndTakesTheFourthRootOfTheMagnitude) {
  ThreadPool pool;
  Tape tape(pool);
  Tensor x = Tensor::zeros({3, 2});
  const float values[] = {3.0f, -4.0f, 0.0f, 1e-2f, 0.0f, 0.0f};
  std::copy(std::begin(values), std::end(values), x.f32());
  const Tensor y = compress_magnitude(tape, x);
  const double fourth_root_of_5 = 1.4953487812;
  EXPECT_NEAR(y.f32()[0], 0.6 * fourth_root_of_5, 1e-5);
  EXPECT_NEAR(y.f32()[1], -0.8 * fourth_root_of_5, 1e-5);
  EXPECT_EQ(y.f32()[2], 0.0f);
  EXPECT_NEAR(y.f32()[3], 0.3162277660, 2e-4);  // the floor is 30 dB below
  EXPECT_EQ(y.f32()[4], 0.0f);
  EXPECT_EQ(y.f32()[5], 0.0f);
}

TEST(CompressMagnitude, GradientsAreTheSlopes) {
  test::expect_gradients([](Tape& tape, std::span<const Tensor> x) { return compress_magnitude(tape, x[0]); },
                         {test::random_nonzero({7, 2}, 3)});
}

TEST(CompressMagnitude, AnotherLastExtentThrows) {
  ThreadPool pool;
  Tape tape(pool);
  EXPECT_THROW(compress_magnitude(tape, Tensor::zeros({4, 3})), UsageError);
}

// ---- Learning ----

// Adam (Kingma and Ba 2015), plain.
class Adam {
 public:
  explicit Adam(Parameters& parameters) : parameters_(parameters) {}
  void step(double rate) {
    ++steps_;
    moments_.resize(parameters_.items().size());
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      Tensor w = parameters_.items()[k].tensor;
      const Tensor g = gradient_of(w);
      moments_[k].resize(static_cast<std::size_t>(w.size()), {0.0, 0.0});
      for (std::size_t i = 0; i < moments_[k].size(); ++i) {
        auto& [mean, square] = moments_[k][i];
        mean += 0.1 * (g.f32()[i] - mean);
        square += 0.01 * (static_cast<double>(g.f32()[i]) * g.f32()[i] - square);
        const double m = mean / (1 - std::pow(0.9, steps_)), s = square / (1 - std::pow(0.99, steps_));
        w.f32()[i] -= static_cast<float>(rate * m / (std::sqrt(s) + 1e-8));
      }
    }
    parameters_.clear_gradients();
  }

 private:
  Parameters& parameters_;
  int steps_ = 0;
  std::vector<std::vector<std::pair<double, double>>> moments_;
};

// Sines of random pitch and phase, or white noise, of the same power.
Tensor examples(Random& random, bool sine, std::int64_t batch, std::int64_t samples) {
  Tensor x = Tensor::zeros({batch, samples});
  for (std::int64_t b = 0; b < batch; ++b) {
    const double turn = 0.1 + 2.8 * random.uniform(), phase = 2 * kPi * random.uniform();
    for (std::int64_t t = 0; t < samples; ++t)
      x.f32()[b * samples + t] =
          sine ? static_cast<float>(0.5 * exact_sin(turn * static_cast<double>(t) + phase))
               : 0.3536f * random.normal();
  }
  return x;
}

void expect_learns(const Discriminator& discriminator, Parameters& parameters, AdversarialLoss form,
                   double midpoint) {
  ThreadPool pool;
  Tape tape(pool);
  Random random(17);
  Adam adam(parameters);
  for (int step = 0; step < 60; ++step) {
    const Judgement real = discriminator.judge(tape, examples(random, true, 4, 256));
    const Judgement fake = discriminator.judge(tape, examples(random, false, 4, 256));
    tape.backward(discriminator_loss(tape, real, fake, form));
    adam.step(1e-2);
  }
  int right = 0;
  for (int i = 0; i < 80; ++i) {
    const bool sine = i % 2 == 0;
    double score = 0;
    for (const Tensor& scores :
         discriminator.judge(tape, examples(random, sine, 1, 256), Mode::frozen).scores)
      score += *ops::mean(tape, scores).f32() - midpoint;
    right += (score > 0) == sine;
  }
  EXPECT_GE(right, 72);  // chance: 40, with a deviation of 4.5
}

TEST(Discriminators, AStftDiscriminatorLearnsToTellSinesFromNoise) {
  Parameters parameters(5);
  StftDiscriminatorConfig config = small_stft();
  config.channels = 4;
  expect_learns(StftDiscriminator(parameters, "d", config), parameters, AdversarialLoss::hinge, 0.0);
}

TEST(Discriminators, APeriodDiscriminatorLearnsToTellSinesFromNoise) {
  Parameters parameters(6);
  PeriodDiscriminatorConfig config = small_period();
  config.channels = 8;
  config.layers = 3;
  expect_learns(PeriodDiscriminator(parameters, "d", config), parameters, AdversarialLoss::least_squares,
                0.5);
}

}  // namespace
}  // namespace tessera::train
