#include "train/objective.h"

#include <cmath>
#include <map>

#include "core/autograd/rearrange.h"
#include "core/error.h"
#include "core/random.h"
#include "train/config_options.h"
#include "train/discriminators/adversarial.h"
#include "train/discriminators/period_discriminator.h"
#include "train/discriminators/stft_discriminator.h"
#include "train/losses/terms.h"
#include "train/losses/waveform_loss.h"

namespace tessera::train {
namespace {

// The term of all that the discriminators say: one pass through them gives scores and features.
constexpr const char* kDiscriminators = "discriminators";
constexpr std::uint64_t kSeenStream = 2;  // of the run's random numbers

Tensor normalized(Tape& tape, const Tensor& output, const Tensor& target, float pre_emphasis) {
  NormalizedErrorOptions options;
  options.pre_emphasis = pre_emphasis;
  return normalized_error(tape, output, target, options);
}

}  // namespace

Objective::Objective(const TrainConfig& config, Parameters& discriminators) : config_(config) {
  const LossConfig& losses = config.losses;
  const auto add = [&](const char* name, double weight, std::int64_t from) {
    if (weight > 0) terms_.push_back({name, static_cast<float>(weight), from});
  };
  add("normalized_error", losses.normalized_error, 0);
  add("pre_emphasized", losses.pre_emphasized, 0);
  add("log_mel", losses.log_mel, losses.log_mel_start);
  add("envelope", losses.envelope, losses.log_mel_start);
  add("stft", losses.stft, losses.log_mel_start);
  add(kDiscriminators, losses.adversarial + losses.feature_matching, config.discriminators.start_step);
  if (terms_.empty()) fail("objective", "a loss of the sound with a weight above 0", "none");
  if (losses.log_mel > 0) log_mel_.emplace(log_mel_loss_options(config));
  if (losses.envelope > 0) envelope_.emplace(envelope_loss_options(config));
  if (losses.stft > 0) stft_.emplace(stft_loss_options(losses));
  if (losses.adversarial > 0 || losses.feature_matching > 0) {
    if (!config.discriminators.stft.empty()) {
      jury_.add(std::make_unique<StftDiscriminator>(discriminators, "stft",
                                                    stft_discriminator_config(config.discriminators)));
    }
    if (!config.discriminators.periods.empty()) {
      jury_.add(std::make_unique<PeriodDiscriminator>(discriminators, "period",
                                                      period_discriminator_config(config.discriminators)));
    }
  }
  if (losses.balancer) {
    std::map<std::string, float> weights;
    for (const Term& term : terms_) weights[term.name] = term.weight;
    balancer_.emplace(weights);
  }
}

Tensor Objective::from_discriminators(Tape& tape, const Tensor& output, const Tensor& target,
                                      LossValues& values) const {
  Judgement real;
  {
    const Tape::Pause pause(tape);
    real = jury_.judge(tape, target, Mode::frozen);
  }
  const Judgement fake = jury_.judge(tape, output, Mode::frozen);
  const Tensor adversarial = generator_loss(tape, fake, config_.discriminators.loss);
  const Tensor matching = feature_matching_loss(tape, real, fake);
  values.emplace_back("adversarial", *adversarial.f32());
  values.emplace_back("feature_matching", *matching.f32());
  const double all = config_.losses.adversarial + config_.losses.feature_matching;
  Tensor sum;
  add_term(tape, sum, adversarial, static_cast<float>(config_.losses.adversarial / all));
  add_term(tape, sum, matching, static_cast<float>(config_.losses.feature_matching / all));
  return sum;
}

Tensor Objective::value(const std::string& term, Tape& tape, const Tensor& output, const Tensor& target,
                        std::int64_t step, LossValues& values) const {
  if (term == kDiscriminators) {
    return from_discriminators(tape, seen(tape, output, step), seen(tape, target, step), values);
  }
  Tensor loss;
  if (term == "normalized_error") {
    loss = normalized(tape, output, target, 0);
  } else if (term == "pre_emphasized") {
    loss = normalized(tape, output, target, 0.97f);
  } else if (term == "log_mel") {
    loss = (*log_mel_)(tape, output, target);
  } else if (term == "envelope") {
    loss = (*envelope_)(tape, output, target);
  } else {
    loss = (*stft_)(tape, output, target);
  }
  values.emplace_back(term, *loss.f32());
  return loss;
}

Tensor Objective::operator()(Tape& tape, const Tensor& output, const Tensor& target, std::int64_t step,
                             LossValues& values) {
  std::vector<NamedLoss> losses;
  Tensor sum;
  for (const Term& term : terms_) {
    if (step < term.from) continue;
    if (balancer_) {
      NamedLoss loss;
      loss.name = term.name;
      loss.loss = [this, &term, &target, step, &values](Tape& t, const Tensor& y) {
        return value(term.name, t, y, target, step, values);
      };
      losses.push_back(std::move(loss));
    } else {
      add_term(tape, sum, value(term.name, tape, output, target, step, values), term.weight);
    }
  }
  return balancer_ ? balancer_->combine(tape, output, losses) : sum;
}

std::vector<std::string> Objective::terms() const {
  std::vector<std::string> names;
  for (const Term& term : terms_) {
    if (term.name == kDiscriminators) {
      names.insert(names.end(), {"adversarial", "feature_matching"});
    } else {
      names.push_back(term.name);
    }
  }
  return names;
}

NamedTensors Objective::state() const {
  return balancer_ ? balancer_->state() : NamedTensors();
}

Result<void> Objective::restore(std::span<const std::pair<std::string, Tensor>> state) {
  if (balancer_) return balancer_->restore(state);
  return {};
}

bool Objective::discriminators_learn(std::int64_t step) const {
  const bool used = config_.losses.adversarial > 0 || config_.losses.feature_matching > 0;
  return used && step >= first_step_of_discriminators(config_) && step % config_.discriminators.every == 0;
}

// The part of pcm [B, T] that the discriminators see.
Tensor Objective::seen(Tape& tape, const Tensor& pcm, std::int64_t step) const {
  const std::int64_t length = std::llround(config_.discriminators.seconds * config_.model.sample_rate_hz);
  if (length == 0 || length >= pcm.dim(1)) return pcm;
  Random random(static_cast<std::uint64_t>(config_.run.seed), kSeenStream, static_cast<std::uint64_t>(step));
  return ops::slice(tape, pcm, 1, random.below(pcm.dim(1) - length + 1), length);
}

Tensor Objective::discriminator_loss(Tape& tape, const Tensor& output, const Tensor& target,
                                     std::int64_t step) const {
  const Judgement real = jury_.judge(tape, seen(tape, target, step));
  const Judgement fake = jury_.judge(tape, seen(tape, output.detached(), step));
  return train::discriminator_loss(tape, real, fake, config_.discriminators.loss);
}

}  // namespace tessera::train
