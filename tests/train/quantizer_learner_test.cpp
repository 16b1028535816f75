// The quantizers that learn: the same bits as the runtime's for any number of threads and after a restore,
// gradients against finite differences, bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "tests/train/quantizer_subject.h"

namespace tessera::train {
namespace {

using namespace quantizer_test;

class EveryQuantizer : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, EveryQuantizer,
                         ::testing::Values(Kind::residual, Kind::residual_gradient, Kind::factorized,
                                           Kind::factorized_gradient));

TEST_P(EveryQuantizer, TokensAndLatentsAreTheRuntimesEachItemWithItsOwnCodebooks) {
  Subject subject(GetParam(), small());
  ThreadPool pool(2);
  subject->initialize(random_floats(300 * kD, 1).data(), 300, pool);
  train(subject, 0, 3);
  const std::unique_ptr<const Quantizer> runtime = subject->runtime();
  const std::int64_t length = 70;
  const Active active = {1, kBooks, 2};
  const Tensor z = latents(3, length, 5);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Tape tape(pool, precision);
    const Quantized got = subject->forward(tape, parameter(z), active, false);
    EXPECT_EQ(tape.precision(), precision);
    EXPECT_EQ(got.tokens.shape(), (Shape{3, length, kBooks}));
    Workspace workspace(runtime->workspace_bytes(static_cast<int>(length)));
    StepContext context{workspace, pool};
    for (std::size_t item = 0; item < 3; ++item) {
      const int count = active[item], rows = static_cast<int>(length);
      const std::size_t at = item * to_size(length * kD);
      Tokens tokens(to_size(rows * count));
      Floats whole(to_size(rows * kD)), first(to_size(rows * kD));
      runtime->encode(z.f32() + at, rows, count, tokens.data(), context);
      runtime->decode(tokens.data(), rows, count, whole.data(), context);
      Tokens firsts;
      for (int row = 0; row < rows; ++row) firsts.push_back(tokens[to_size(row * count)]);
      runtime->decode(firsts.data(), rows, 1, first.data(), context);
      for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < kBooks; ++i) {
          const std::int32_t* of_item = got.tokens.as<std::int32_t>() + item * to_size(length * kBooks);
          ASSERT_EQ(of_item[row * kBooks + i], i < count ? tokens[to_size(row * count + i)] : -1);
        }
      }
      EXPECT_EQ(std::memcmp(got.latents.f32() + at, whole.data(), whole.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(got.first.f32() + at, first.data(), first.size() * sizeof(float)), 0);
      EXPECT_EQ(count == 1, whole == first);
    }
  }
}

TEST_P(EveryQuantizer, SameBitsForAnyNumberOfThreadsAndAfterARestore) {
  Subject one(GetParam(), small()), three(GetParam(), small()), resumed(GetParam(), small());
  for (Subject* subject : {&one, &three}) {
    ThreadPool pool(subject == &one ? 1 : 3);
    (*subject)->initialize(random_floats(300 * kD, 1).data(), 300, pool);
  }
  const Floats start = state_of(one);
  train(three, 0, 6, 3);
  train(one, 0, 3);
  ASSERT_TRUE(resumed->restore(one->save()));
  ASSERT_TRUE(resumed.parameters.set_values(one.parameters.values()));
  train(one, 3, 6);
  train(resumed, 3, 6);
  EXPECT_NE(state_of(one), start);
  EXPECT_EQ(state_of(three), state_of(one));
  EXPECT_EQ(state_of(resumed), state_of(one));
}

// d loss / d x by central differences of `loss`, against `gradient`; where a difference changes the tokens
// it says nothing.
template <class Loss>
void expect_gradient(Tensor x, const Floats& gradient, const Loss& loss, int at_least) {
  const auto [value, tokens] = loss();
  int checked = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const float before = x.f32()[i], h = 1.0f / 128;
    x.f32()[i] = before + h;
    const auto [above, tokens_above] = loss();
    x.f32()[i] = before - h;
    const auto [below, tokens_below] = loss();
    x.f32()[i] = before;
    if (tokens_above != tokens || tokens_below != tokens) continue;
    ++checked;
    EXPECT_NEAR((above - below) / (2 * h), gradient[to_size(i)], 2e-4) << i;
  }
  EXPECT_GE(checked, at_least);
}

using LossAndTokens = std::pair<double, Tokens>;

TEST(QuantizerLearner, CommitmentGradientByFiniteDifferences) {
  for (const Kind kind : {Kind::residual, Kind::factorized_gradient}) {
    QuantizerLearnerOptions options = small();
    options.normalize_loss = false;
    // Behind the first level of a factorized quantizer, values do not follow the gradient that goes straight
    // through.
    options.codebooks = kind == Kind::residual ? 3 : 1;
    Subject subject(kind, options);
    ThreadPool pool(1);
    Tape tape(pool);
    Tensor z = parameter(latents(2, 4, 3));
    const Active active = {1, options.codebooks};
    const auto loss = [&] {
      const Tape::Pause pause(tape);
      const Quantized q = subject->forward(tape, z, active, false);
      return LossAndTokens(*q.commitment.f32(), tokens_of(q));
    };
    tape.backward(subject->forward(tape, z, active, false).commitment);
    const Floats gradient = floats_of(gradient_of(z));
    expect_gradient(z, gradient, loss, 60);
    if (kind == Kind::factorized_gradient) {
      const Tensor weight = subject.parameters.find("quantizer.0.input.weight");
      expect_gradient(weight, floats_of(gradient_of(weight)), loss, 24);
    }
    // Relative to the mean square of what is quantized, which has no gradient of its own.
    if (kind != Kind::residual) continue;
    options.normalize_loss = true;
    Subject relative(kind, options);
    clear_gradient(z);
    const Quantized q = relative->forward(tape, z, active, false);
    double square = 0;
    for (const float value : floats_of(z)) square += double{value} * double{value} / double(z.size());
    EXPECT_NEAR(*q.commitment.f32(), loss().first / square, 1e-5);
    tape.backward(q.commitment);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      EXPECT_NEAR(gradient_of(z).f32()[i], gradient[i] / square, 1e-6);
  }
}

TEST(QuantizerLearner, CodebookGradientByFiniteDifferences) {
  for (const Kind kind : {Kind::residual_gradient, Kind::factorized_gradient}) {
    QuantizerLearnerOptions options = small();
    options.codebooks = 1;
    options.codebook_size = 6;
    options.normalize_loss = false;
    Subject subject(kind, options);
    ThreadPool pool(1);
    Tape tape(pool);
    const Tensor z = latents(1, 10, 3);
    const Tensor words = subject.parameters.find("quantizer.0.codewords");
    const Active active = {1};
    const auto loss = [&] {
      const Quantized q = subject->forward(tape, z, active, false);
      return LossAndTokens(*q.codebook_loss.f32(), tokens_of(q));
    };
    tape.backward(subject->forward(tape, z, active, false).codebook_loss);
    expect_gradient(words, floats_of(gradient_of(words)), loss, static_cast<int>(words.size()) / 2);
  }
}

TEST(QuantizerLearner, GradientGoesStraightThrough) {
  Subject subject(Kind::residual, small());
  ThreadPool pool(1);
  Tape tape(pool);
  const Tensor z = parameter(latents(2, 5, 3)), above = latents(2, 5, 4);
  const Active active = {2, 4};
  tape.backward(subject->forward(tape, z, active, false).latents, above);
  EXPECT_EQ(floats_of(gradient_of(z)), floats_of(above));
  clear_gradient(z);
  tape.backward(subject->forward(tape, z, active, false).first, above);
  EXPECT_EQ(floats_of(gradient_of(z)), floats_of(above));
}

TEST(QuantizerLearner, BadInput) {
  Subject subject(Kind::residual, small());
  ThreadPool pool(1);
  Tape tape(pool);
  const auto pass = [&](const Shape& shape, const Active& active) {
    return subject->forward(tape, Tensor::zeros(shape), active, true);
  };
  EXPECT_THROW((void)subject->update(0, pool), UsageError);  // no pass
  EXPECT_THROW(pass({0, 5, kD}, {}), UsageError);
  EXPECT_THROW(pass({1, 0, kD}, {1}), UsageError);
  EXPECT_THROW(pass({1, 5, kD + 1}, {1}), UsageError);
  EXPECT_THROW(pass({5, kD}, {1}), UsageError);
  EXPECT_THROW(pass({2, 5, kD}, {1}), UsageError);
  EXPECT_THROW(pass({1, 5, kD}, {0}), UsageError);
  EXPECT_THROW(pass({1, 5, kD}, {kBooks + 1}), UsageError);
  EXPECT_THROW((void)subject->codewords(kBooks), UsageError);
  pass({1, 5, kD}, {1});
  EXPECT_THROW((void)subject->update(0, pool, {.rank = 0, .count = 2}), UsageError);

  const Floats before = state_of(subject);
  Tensor bad = latents(1, 5, 1);
  bad.f32()[3] = std::numeric_limits<float>::quiet_NaN();
  subject->forward(tape, bad, Active{4}, true);
  const Result<void> result = subject->update(17, pool);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::damaged);
  EXPECT_EQ(result.error().message, "codebooks, step 17: expected finite latents, got NaN or infinity");
  EXPECT_EQ(state_of(subject), before);
  pass({1, 5, kD}, {4});
  EXPECT_TRUE(subject->update(18, pool));

  NamedTensors state = subject->save();
  state.pop_back();
  const Result<void> restored = subject->restore(state);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::mismatch);
}

TEST(QuantizerLearner, SampleActive) {
  Random random(3);
  std::vector<int> seen(9);
  for (const int count : sample_active(random, 9000, 8)) ++seen[to_size(count)];
  EXPECT_EQ(seen[0], 0);
  for (int count = 1; count < 8; ++count) EXPECT_NEAR(seen[to_size(count)], 9000 / 16, 120);
  EXPECT_NEAR(seen[8], 4500 + 9000 / 16, 240);
  const Active chosen = sample_active(random, 1000, 8, {.all = 0.0f, .choices = {2, 4}});
  EXPECT_NEAR(std::count(chosen.begin(), chosen.end(), 2), 500, 80);
  EXPECT_EQ(std::accumulate(chosen.begin(), chosen.end(), 0),
            4000 - 2 * std::count(chosen.begin(), chosen.end(), 2));
  EXPECT_EQ(sample_active(random, 3, 8, {.all = 1.0f}), (Active{8, 8, 8}));
  EXPECT_THROW(sample_active(random, 3, 8, {.choices = {9}}), UsageError);
}

}  // namespace
}  // namespace tessera::train
