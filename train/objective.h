// What a codec is trained for: the losses of its sound against the recording, weighted as the configuration
// says, and the discriminators, which learn beside it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/tape.h"
#include "train/config.h"
#include "train/discriminators/discriminator.h"
#include "train/losses/balancer.h"
#include "train/losses/spectral_loss.h"
#include "train/parameters.h"

namespace tessera::train {

/// Losses by name as they were computed, before their weights.
using LossValues = std::vector<std::pair<std::string, double>>;

class Objective {
 public:
  /// The discriminators' weights go to `discriminators`. Throws UsageError for a configuration that cannot
  /// work.
  Objective(const TrainConfig& config, Parameters& discriminators);

  /// The weighted sum of all terms that are on at this step, [1]: output, target [B, T]. At least one must
  /// be. Its gradient flows to output only. Appends the terms' values to `values`.
  Tensor operator()(Tape& tape, const Tensor& output, const Tensor& target, std::int64_t step,
                    LossValues& values);

  /// Whether the discriminators learn at this step.
  bool discriminators_learn(std::int64_t step) const;
  /// Their loss, [1], for recordings and decoded sound (off the tape), of which they see the same part as in
  /// this step's losses.
  Tensor discriminator_loss(Tape& tape, const Tensor& output, const Tensor& target, std::int64_t step) const;

  /// Names of all terms that are ever on, for the columns of a log.
  std::vector<std::string> terms() const;

  /// What the balancer remembers; empty without one.
  NamedTensors state() const;
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state);

 private:
  struct Term {
    std::string name;
    float weight;
    std::int64_t from;  // first step
  };
  Tensor value(const std::string& term, Tape& tape, const Tensor& output, const Tensor& target,
               std::int64_t step, LossValues& values) const;
  Tensor from_discriminators(Tape& tape, const Tensor& output, const Tensor& target,
                             LossValues& values) const;
  Tensor seen(Tape& tape, const Tensor& pcm, std::int64_t step) const;

  TrainConfig config_;
  std::vector<Term> terms_;
  std::optional<LogMelLoss> log_mel_, envelope_;
  std::optional<StftLoss> stft_;
  Jury jury_;
  std::optional<Balancer> balancer_;
};

}  // namespace tessera::train
