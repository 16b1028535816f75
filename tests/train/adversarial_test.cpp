// Adversarial losses on small judgements, against numbers worked out by hand.
#include "train/discriminators/adversarial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"

namespace tessera::train {
namespace {

Tensor tensor(const std::vector<float>& values) {
  Tensor result = Tensor::zeros({1, static_cast<std::int64_t>(values.size()), 1});
  std::copy(values.begin(), values.end(), result.f32());
  return parameter(result);
}

std::vector<float> gradient(const Tensor& x) {
  const Tensor g = gradient_of(x);
  return g.defined() ? std::vector<float>(g.f32(), g.f32() + g.size()) : std::vector<float>();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6f) << i;
}

class AdversarialTest : public testing::Test {
 protected:
  AdversarialTest() {
    real.scores = {tensor({0.5f, 2.0f}), tensor({-1.0f})};
    fake.scores = {tensor({-2.0f, 0.0f, 0.5f}), tensor({3.0f})};
    real.features = {{tensor({1.0f, -3.0f}), tensor({4.0f})}, {tensor({0.0f, 0.0f})}};
    fake.features = {{tensor({2.0f, -1.0f}), tensor({3.0f})}, {tensor({0.002f, 0.0f})}};
  }
  ThreadPool pool;
  Tape tape{pool};
  Judgement real, fake;
};

TEST_F(AdversarialTest, HingeOfTheDiscriminator) {
  const Tensor loss = discriminator_loss(tape, real, fake);
  EXPECT_NEAR(*loss.f32(), ((0.25 + 2.5 / 3) + (2 + 4)) / 2, 1e-6);
  tape.backward(loss);
  expect_near(gradient(real.scores[0]), {-0.25f, 0.0f});
  expect_near(gradient(real.scores[1]), {-0.5f});
  expect_near(gradient(fake.scores[0]), {0.0f, 1.0f / 6, 1.0f / 6});
  expect_near(gradient(fake.scores[1]), {0.5f});
}

TEST_F(AdversarialTest, HingeOfTheGenerator) {
  const Tensor loss = generator_loss(tape, fake);
  EXPECT_NEAR(*loss.f32(), (1.5 + 0) / 2, 1e-6);
  tape.backward(loss);
  expect_near(gradient(fake.scores[0]), {-1.0f / 6, -1.0f / 6, -1.0f / 6});
  expect_near(gradient(fake.scores[1]), {0.0f});
}

TEST_F(AdversarialTest, LinearHingeDiffersForTheGeneratorOnly) {
  EXPECT_EQ(*discriminator_loss(tape, real, fake, AdversarialLoss::hinge_linear).f32(),
            *discriminator_loss(tape, real, fake, AdversarialLoss::hinge).f32());
  const Tensor loss = generator_loss(tape, fake, AdversarialLoss::hinge_linear);
  EXPECT_NEAR(*loss.f32(), (0.5 - 3) / 2, 1e-6);
  tape.backward(loss);
  expect_near(gradient(fake.scores[1]), {-0.5f});
}

TEST_F(AdversarialTest, LeastSquares) {
  const Tensor d = discriminator_loss(tape, real, fake, AdversarialLoss::least_squares);
  EXPECT_NEAR(*d.f32(), ((0.625 + 4.25 / 3) + (4 + 9)) / 2, 1e-5);
  tape.backward(d);
  expect_near(gradient(real.scores[0]), {-0.25f, 0.5f});
  expect_near(gradient(fake.scores[1]), {3.0f});
  const Tensor g = generator_loss(tape, fake, AdversarialLoss::least_squares);
  EXPECT_NEAR(*g.f32(), (10.25 / 3 + 4) / 2, 1e-5);
}

TEST_F(AdversarialTest, FeatureMatchingIsRelativeAndMovesTheFakeOnly) {
  const Tensor loss = feature_matching_loss(tape, real, fake);
  EXPECT_NEAR(*loss.f32(), ((0.75 + 0.25) / 2 + 1.0) / 2, 1e-6);  // of silence: over the least scale
  tape.backward(loss);
  expect_near(gradient(fake.features[0][0]), {0.0625f, 0.0625f});  // 1/2 of 2, over 2, 2 layers, 2 lists
  expect_near(gradient(fake.features[0][1]), {-0.0625f});
  for (const auto& list : real.features)
    for (const Tensor& feature : list) EXPECT_FALSE(gradient_of(feature).defined());
}

TEST_F(AdversarialTest, EqualFeaturesMatch) {
  EXPECT_EQ(*feature_matching_loss(tape, real, real).f32(), 0.0f);
}

TEST_F(AdversarialTest, JudgementsThatDoNotBelongTogetherThrow) {
  EXPECT_THROW(discriminator_loss(tape, {}, {}), UsageError);
  EXPECT_THROW(generator_loss(tape, {}), UsageError);
  Judgement shorter = fake;
  shorter.scores.pop_back();
  EXPECT_THROW(discriminator_loss(tape, real, shorter), UsageError);
  shorter = fake;
  shorter.features.pop_back();
  EXPECT_THROW(feature_matching_loss(tape, real, shorter), UsageError);
  shorter = fake;
  shorter.features[0].pop_back();
  EXPECT_THROW(feature_matching_loss(tape, real, shorter), UsageError);
}

}  // namespace
}  // namespace tessera::train
