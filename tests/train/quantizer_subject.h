// What the tests of learning quantizers share: one of each kind, and a little training.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "tests/random.h"
#include "train/quantizers/factorized_vq_learner.h"
#include "train/quantizers/residual_vq_learner.h"

namespace tessera::train::quantizer_test {

using Floats = std::vector<float>;
using Tokens = std::vector<std::int32_t>;
using Active = std::vector<int>;
using ::tessera::test::random_floats;

inline std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

inline Tensor tensor_of(const Floats& values, const Shape& shape) {
  Tensor tensor = Tensor::zeros(shape);
  EXPECT_EQ(values.size(), to_size(shape.size()));
  std::copy(values.begin(), values.end(), tensor.f32());
  return tensor;
}

inline Floats floats_of(const Tensor& tensor) {
  return {tensor.f32(), tensor.f32() + tensor.size()};
}

inline Tokens tokens_of(const Quantized& quantized) {
  const std::int32_t* tokens = quantized.tokens.as<std::int32_t>();
  return {tokens, tokens + quantized.tokens.size()};
}

// The learners under test, for latents of 12 floats.
enum class Kind : std::uint8_t { residual, residual_gradient, factorized, factorized_gradient };

struct Subject {
  explicit Subject(Kind kind, QuantizerLearnerOptions options = {}) {
    options.codebook_gradient = kind == Kind::residual_gradient || kind == Kind::factorized_gradient;
    if (kind == Kind::residual || kind == Kind::residual_gradient) {
      learner = std::make_unique<ResidualVqLearner>(options, parameters);
    } else {
      learner = std::make_unique<FactorizedVqLearner>(options, parameters, "quantizer.", 4);
    }
  }
  QuantizerLearner* operator->() { return learner.get(); }
  Parameters parameters{7};
  std::unique_ptr<QuantizerLearner> learner;
};

constexpr int kD = 12, kBooks = 4, kSize = 32;

inline QuantizerLearnerOptions small() {
  QuantizerLearnerOptions options;
  options.codebooks = kBooks;
  options.codebook_size = kSize;
  options.dimension = kD;
  options.decay = 0.8f;
  options.dead_below = 0.2f;
  return options;
}

inline Tensor latents(std::int64_t items, std::int64_t length, std::uint64_t seed) {
  return tensor_of(random_floats(to_size(items * length * kD), seed), {items, length, kD});
}

// Training steps [from, to) on random latents: passes, losses, plain gradient descent, update.
inline void train(Subject& subject, int from, int to, int threads = 1) {
  ThreadPool pool(threads);
  Tape tape(pool);
  for (int step = from; step < to; ++step) {
    const auto at = static_cast<std::uint64_t>(step);
    Random random(11, 0, at);
    const Active active = sample_active(random, 3, kBooks);
    const Quantized q = subject->forward(tape, parameter(latents(3, 70, 100 + at)), active, true);
    Tensor loss = ops::add(tape, q.commitment, ops::mean(tape, ops::square(tape, q.latents)));
    if (q.codebook_loss.defined()) loss = ops::add(tape, loss, q.codebook_loss);
    tape.backward(loss);
    for (const Parameter& item : subject.parameters.items()) {
      Tensor values = item.tensor;
      const Tensor gradient = gradient_of(values);
      for (std::int64_t i = 0; gradient.defined() && i < values.size(); ++i)
        values.f32()[i] -= 0.1f * gradient.f32()[i];
    }
    subject.parameters.clear_gradients();
    ASSERT_TRUE(subject->update(at, pool));
  }
}

inline Floats state_of(Subject& subject) {
  Floats all;
  for (const NamedTensors& part : {subject->save(), subject.parameters.values()}) {
    for (const auto& [name, tensor] : part) {
      const Floats values = floats_of(tensor);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

}  // namespace tessera::train::quantizer_test
