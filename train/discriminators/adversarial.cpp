#include "train/discriminators/adversarial.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "core/error.h"

namespace tessera::train {
namespace {

constexpr float kLeastScale = 1e-3f;  // 60 dB below full scale: quieter features are as good as silent

// How many sub-discriminators (or features of one) both sides have.
std::size_t count_of_both(const char* op, std::size_t real, std::size_t fake) {
  if (real == 0 || real != fake)
    fail(op, "as many of the fake as of the real, at least one",
         std::to_string(real) + " real, " + std::to_string(fake) + " fake");
  return real;
}

// mean relu(1 + sign D): what lies on the wrong side of the margin.
Tensor hinge(Tape& tape, const Tensor& scores, float sign) {
  return ops::mean(tape, ops::activate(tape, Activation::relu, ops::affine(tape, scores, sign, 1.0f)));
}

// mean (D - target)^2
Tensor square_to(Tape& tape, const Tensor& scores, float target) {
  return ops::mean(tape, ops::square(tape, ops::affine(tape, scores, 1.0f, -target)));
}

Tensor average(Tape& tape, const std::vector<Tensor>& terms) {
  Tensor sum = terms.at(0);
  for (std::size_t i = 1; i < terms.size(); ++i) sum = ops::add(tape, sum, terms[i]);
  return ops::affine(tape, sum, 1.0f / static_cast<float>(terms.size()));
}

}  // namespace

Tensor discriminator_loss(Tape& tape, const Judgement& real, const Judgement& fake, AdversarialLoss form) {
  const std::size_t count = count_of_both("discriminator_loss", real.scores.size(), fake.scores.size());
  std::vector<Tensor> terms;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor &d_real = real.scores[i], &d_fake = fake.scores[i];
    const bool squares = form == AdversarialLoss::least_squares;
    terms.push_back(ops::add(tape, squares ? square_to(tape, d_real, 1.0f) : hinge(tape, d_real, -1.0f),
                             squares ? square_to(tape, d_fake, 0.0f) : hinge(tape, d_fake, 1.0f)));
  }
  return average(tape, terms);
}

Tensor generator_loss(Tape& tape, const Judgement& fake, AdversarialLoss form) {
  if (fake.scores.empty()) fail("generator_loss", "at least one sub-discriminator", "none");
  std::vector<Tensor> terms;
  for (const Tensor& scores : fake.scores) {
    switch (form) {
      case AdversarialLoss::hinge:
        terms.push_back(hinge(tape, scores, -1.0f));
        break;
      case AdversarialLoss::hinge_linear:
        terms.push_back(ops::affine(tape, ops::mean(tape, scores), -1.0f));
        break;
      case AdversarialLoss::least_squares:
        terms.push_back(square_to(tape, scores, 1.0f));
        break;
    }
  }
  return average(tape, terms);
}

Tensor feature_matching_loss(Tape& tape, const Judgement& real, const Judgement& fake) {
  const char* op = "feature_matching_loss";
  const std::size_t count = count_of_both(op, real.features.size(), fake.features.size());
  std::vector<Tensor> terms;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<Tensor>&of_real = real.features[i], &of_fake = fake.features[i];
    const std::size_t layers = count_of_both(op, of_real.size(), of_fake.size());
    std::vector<Tensor> distances;
    for (std::size_t k = 0; k < layers; ++k) {
      const Tensor target = of_real[k].detached();
      const float scale = *ops::mean(tape, ops::abs(tape, target)).f32();
      const Tensor distance = ops::mean(tape, ops::abs(tape, ops::sub(tape, of_fake[k], target)));
      distances.push_back(ops::affine(tape, distance, 1.0f / std::max(scale, kLeastScale)));
    }
    terms.push_back(average(tape, distances));
  }
  return average(tape, terms);
}

}  // namespace tessera::train
