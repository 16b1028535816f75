// One training run's model, quantizer, discriminators and optimizers, and the step that improves them. What
// the step does depends on the state, the step's number and the batch alone: not on threads, not on whether
// the run was stopped in between.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/tape.h"
#include "core/result.h"
#include "train/codec_model.h"
#include "train/config.h"
#include "train/data/crops.h"
#include "train/distiller.h"
#include "train/ema.h"
#include "train/guard.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/parameters.h"
#include "train/quantizers/quantizer_learner.h"

namespace tessera::train {

/// Where the time of a step goes.
enum class Phase : std::uint8_t { forward, losses, backward, discriminators, optimizer };
inline constexpr std::array kPhaseNames = {"forward", "losses", "backward", "discriminators", "optimizer"};

struct StepReport {
  LossValues losses = {};    ///< before their weights
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  std::array<double, kPhaseNames.size()> seconds{};  ///< by Phase
};

class TrainingStep {
 public:
  /// Random weights by the configuration; set_distiller(), then initialize() or restore() come next. Errors:
  /// usage; those of reading model.from.
  static Result<std::unique_ptr<TrainingStep>> make(const TrainConfig& config, ThreadPool& pool);

  /// First weights as the configuration says, statistics taken from `pcm` [B, L], some minutes of the data.
  /// Errors: those of reading model.from.
  Result<void> initialize(const Tensor& pcm);
  /// Gives the first codebook a teacher.
  void set_distiller(std::unique_ptr<Distiller> distiller) { distiller_ = std::move(distiller); }
  Parameters& parameters() { return parameters_; }

  /// Trains on a batch; `name` says what it is, for errors. Error (damaged): a loss or a gradient is not
  /// finite or has exploded; says which, at which step, on what. The state is then of no use.
  Result<StepReport> run(const Batch& batch, const std::string& name);
  /// Steps done.
  std::int64_t steps() const { return steps_; }

  /// Everything that changes, for a checkpoint: shares the storage.
  NamedTensors state() const;
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state, std::int64_t steps);

  const TrainConfig& config() const { return config_; }
  Tape& tape() { return tape_; }
  CodecModel& model() { return *model_; }
  QuantizerLearner& quantizer() { return *quantizer_; }
  Objective& objective() { return *objective_; }
  WeightAverage& average() { return *average_; }
  /// Names of all losses that run() may report.
  std::vector<std::string> loss_names() const;

 private:
  TrainingStep(const TrainConfig& config, ThreadPool& pool)
      : config_(config), tape_(pool, config.run.precision) {}

  void make_optimizers();
  Tensor beside_the_sound(const Quantized& quantized, const Batch& batch, LossValues& values);
  Result<void> discriminate(const Tensor& output, const Tensor& target, StepReport& report,
                            const std::string& batch);

  TrainConfig config_;
  Tape tape_;
  Parameters parameters_, discriminator_parameters_;
  std::unique_ptr<CodecModel> model_;
  std::unique_ptr<QuantizerLearner> quantizer_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<Distiller> distiller_;
  std::unique_ptr<AdamW> optimizer_, discriminator_optimizer_;
  std::unique_ptr<WeightAverage> average_;
  LossGuard guard_;
  std::int64_t steps_ = 0;
};

}  // namespace tessera::train
