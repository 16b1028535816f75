// Where vector quantizers go wrong in training: no gradient through the rounding, codewords that die or fall
// back after they were replaced, statistics of one rank only.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/autograd/conv.h"
#include "core/error.h"
#include "tests/train/quantizer_subject.h"

namespace tessera::train {
namespace {

using namespace quantizer_test;

TEST(QuantizerTraining, EncoderLearnsAndUsesAllCodewords) {
  // Points of the plane through a matrix, a codebook and another matrix, back to themselves.
  QuantizerLearnerOptions options;
  options.codebooks = 1;
  options.codebook_size = 16;
  options.dimension = 2;
  Parameters parameters;
  ResidualVqLearner learner(options, parameters);
  Tensor encoder = parameters.add("encoder", tensor_of({0.3f, 0.1f, -0.2f, 0.4f}, {2, 2}));
  Tensor decoder = parameters.add("decoder", tensor_of({1, 0, 0, 1}, {2, 2}));
  ThreadPool pool(1);
  Tape tape(pool);
  const Active active = {1};
  double first = 0, last = 0;
  for (std::uint64_t step = 0; step < 300; ++step) {
    const Tensor x = tensor_of(random_floats(400, step), {1, 200, 2});
    const Tensor z = ops::matmul(tape, x, encoder);
    if (step == 0) learner.initialize(z.f32(), 200, pool);
    if (step == 200) learner.reset_health();
    const Quantized q = learner.forward(tape, z, active, true);
    const Tensor miss = ops::sub(tape, ops::matmul(tape, q.latents, decoder), x);
    const Tensor loss = ops::mean(tape, ops::square(tape, miss));
    (step == 0 ? first : last) = double{*loss.f32()};
    tape.backward(loss);

    ASSERT_TRUE(gradient_of(encoder).defined());
    // What the decoder asks of its input is, through the encoder's own product, the encoder's gradient.
    const Tensor latent = parameter(q.latents);
    tape.backward(ops::mean(tape, ops::square(tape, ops::sub(tape, ops::matmul(tape, latent, decoder), x))));
    const Tensor again = parameter(encoder);
    tape.backward(ops::matmul(tape, x, again), gradient_of(latent));
    ASSERT_EQ(floats_of(gradient_of(encoder)), floats_of(gradient_of(again)));

    tape.backward(learner.forward(tape, ops::matmul(tape, x, encoder), active, false).commitment);
    for (Tensor* weight : {&encoder, &decoder}) {
      for (int i = 0; i < 4; ++i) weight->f32()[i] -= 0.1f * gradient_of(*weight).f32()[i];
    }
    parameters.clear_gradients();
    ASSERT_TRUE(learner.update(step, pool));
  }
  EXPECT_GT(first, 0.1);
  EXPECT_LT(last, 0.03);  // 16 square cells of the plane would leave 0.0208
  EXPECT_GT(learner.health()[0].perplexity, 12);
  EXPECT_EQ(learner.health()[0].unused, 0);
}

TEST(QuantizerTraining, LevelsOfKMeansFindSumsOfCodewords) {
  // Rows are one of 4 large steps plus one of 4 small ones in other dimensions.
  QuantizerLearnerOptions options = small();
  options.codebooks = 2;
  options.codebook_size = 4;
  for (const Kind kind : {Kind::residual, Kind::residual_gradient}) {
    Subject subject(kind, options);
    Floats rows(160 * kD);
    for (int r = 0; r < 160; ++r) {
      rows[to_size(r * kD + r % 4)] = 10;
      rows[to_size(r * kD + 4 + r / 4 % 4)] = 1;
    }
    ThreadPool pool(1);
    subject->initialize(rows.data(), 160, pool);
    Tape tape(pool);
    const Quantized q = subject->forward(tape, tensor_of(rows, {1, 160, kD}), Active{2}, true);
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(q.latents.f32()[i], rows[i], 1e-5f);
    // The first level leaves the small step less its mean, the second nothing; of 101 per row.
    EXPECT_NEAR(*q.commitment.f32(), 0.75f / 2 / 101, 1e-6f);
    ASSERT_TRUE(subject->update(0, pool));
    for (const CodebookHealth& health : subject->health()) {
      EXPECT_NEAR(health.perplexity, 4, 1e-9);
      EXPECT_EQ(health.unused, 0);
    }
    EXPECT_THROW(subject->initialize(rows.data(), 3, pool), UsageError);
  }
}

// Adds up what two threads give, as ranks of a group.
class TwoRanks {
 public:
  RankGroup of(int rank) {
    return {rank, 2, [this, rank](std::span<float> values) {
              parts_[rank] = values;
              barrier_.arrive_and_wait();
              Floats sum(values.size());
              for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = parts_[0][i] + parts_[1][i];
              barrier_.arrive_and_wait();
              std::copy(sum.begin(), sum.end(), values.begin());
            }};
  }

 private:
  std::barrier<> barrier_{2};
  std::span<float> parts_[2];
};

// The state in which two ranks end that are as one with all rows.
Floats expect_ranks_agree(Kind kind, float dead_below) {
  QuantizerLearnerOptions options = small();
  options.dead_below = dead_below;
  Subject whole(kind, options), first(kind, options), second(kind, options);
  const Tensor z = latents(4, 40, 9);
  Tensor halves[2] = {latents(2, 40, 0), latents(2, 40, 0)};
  for (int rank = 0; rank < 2; ++rank)
    std::memcpy(halves[rank].raw(), z.f32() + rank * halves[0].size(), halves[0].bytes());
  const Active active = {4, 1, 3, 4};
  TwoRanks group;
  const auto steps = [&](Subject& subject, const Tensor& data, Active counts, const RankGroup& ranks) {
    ThreadPool pool(1);
    subject->initialize(z.f32(), 160, pool);
    Tape tape(pool);
    for (std::uint64_t step = 0; step < 8; ++step) {
      subject->forward(tape, data, counts, true);
      EXPECT_TRUE(subject->update(step, pool, ranks));
    }
  };
  steps(whole, z, active, {});
  std::thread other([&] { steps(second, halves[1], {3, 4}, group.of(1)); });
  steps(first, halves[0], {4, 1}, group.of(0));
  other.join();
  EXPECT_EQ(state_of(first), state_of(second));
  const Floats one = state_of(whole), two = state_of(first);
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(two[i], one[i], 1e-4f * (1 + std::abs(one[i]))) << i;  // sums in another order
  return two;
}

TEST(QuantizerTraining, TwoRanksAreOneWithAllRows) {
  for (const Kind kind : {Kind::residual, Kind::factorized, Kind::residual_gradient})
    expect_ranks_agree(kind, 0.0f);
}

TEST(QuantizerTraining, RanksReplaceTheSameDeadCodewords) {
  EXPECT_NE(expect_ranks_agree(Kind::residual, 0.7f), expect_ranks_agree(Kind::residual, 0.0f));
}

TEST(QuantizerTraining, DeadCodewordsComeBackAndStay) {
  QuantizerLearnerOptions options = small();
  options.codebooks = 1;
  Subject subject(Kind::residual, options);
  ThreadPool pool(1);
  Tape tape(pool);
  // All codewords far away but one: it wins everything.
  const NamedTensors state = subject->save();
  for (std::int64_t i = kD; i < kSize * kD; ++i) {
    for (const std::size_t part : {std::size_t{0}, std::size_t{2}}) {
      Tensor values = state[part].second;
      values.f32()[i] = 100.0f;
    }
  }
  const auto steps = [&](std::uint64_t from, std::uint64_t to) {
    subject->reset_health();
    for (std::uint64_t step = from; step < to; ++step) {
      subject->forward(tape, latents(2, 100, step), Active{1, 1}, true);
      ASSERT_TRUE(subject->update(step, pool));
    }
  };
  steps(0, 3);
  EXPECT_NEAR(subject->health()[0].perplexity, 1, 1e-9);
  steps(3, 60);
  steps(60, 70);
  EXPECT_GT(subject->health()[0].perplexity, 24);
  EXPECT_EQ(subject->health()[0].unused, 0);
}

TEST(QuantizerTraining, SeveralPassesMakeOneUpdate) {
  QuantizerLearnerOptions options = small();
  options.dead_below = 0;
  Subject once(Kind::residual, options), twice(Kind::residual, options);
  ThreadPool pool(1);
  Tape tape(pool);
  const Tensor z = latents(2, 30, 1);
  once->forward(tape, z, Active{4, 4}, true);
  for (int i = 0; i < 2; ++i) {
    Tensor item = latents(1, 30, 0);
    std::memcpy(item.raw(), z.f32() + i * item.size(), item.bytes());
    twice->forward(tape, item, Active{4}, true);
  }
  ASSERT_TRUE(once->update(0, pool));
  ASSERT_TRUE(twice->update(0, pool));
  const Floats a = state_of(once), b = state_of(twice);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5f);
}

}  // namespace
}  // namespace tessera::train
