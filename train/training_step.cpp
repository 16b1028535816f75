#include "train/training_step.h"

#include <chrono>

#include "core/autograd/elementwise.h"
#include "core/autograd/rearrange.h"
#include "core/autograd/reduce.h"
#include "train/config_options.h"
#include "train/model_file.h"
#include "train/model_start.h"
#include "train/named_state.h"
#include "train/quantizers/factorized_vq_learner.h"
#include "train/quantizers/residual_vq_learner.h"

namespace tessera::train {
namespace {

constexpr std::uint64_t kDropoutStream = 1;  // of the run's random numbers

// Adds up how long phases take.
class Stopwatch {
 public:
  explicit Stopwatch(StepReport& report) : report_(report) {}
  /// What passed since the last call (or the start) belongs to `phase`.
  void lap(Phase phase) {
    const Clock::time_point now = Clock::now();
    report_.seconds[static_cast<std::size_t>(phase)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  StepReport& report_;
  Clock::time_point last_ = Clock::now();
};

std::unique_ptr<QuantizerLearner> make_quantizer(const TrainConfig& config, Parameters& parameters) {
  const QuantizerLearnerOptions options = quantizer_learner_options(config);
  if (config.model.quantizer == ModelConfig::Quantizer::residual) {
    return std::make_unique<ResidualVqLearner>(options, parameters);
  }
  return std::make_unique<FactorizedVqLearner>(options, parameters, "quantizer.",
                                               config.model.code_dimension);
}

Error with_place(const Error& error, std::int64_t step, const std::string& batch) {
  return Error{error.code, "step " + std::to_string(step) + ": " + error.message + "; batch: " + batch};
}

}  // namespace

Result<std::unique_ptr<TrainingStep>> TrainingStep::make(const TrainConfig& config, ThreadPool& pool) {
  std::unique_ptr<TrainingStep> step(new TrainingStep(config, pool));
  TesseraConfig model;
  if (config.model.from.empty()) {
    auto fresh = new_model(config.model);
    if (!fresh) return fresh.error();
    model = std::move(*fresh);
  } else {
    auto file = read_model_file(config.model.from);
    if (!file) return file.error();
    model = std::move(file->config);
    if (config.model.quantizer == ModelConfig::Quantizer::residual) {
      model.search_paths = config.model.search_paths;  // how to encode, not what the weights are
    }
  }
  const std::uint64_t seed = static_cast<std::uint64_t>(config.run.seed);
  step->parameters_ = Parameters(seed);
  step->discriminator_parameters_ = Parameters(seed + 1);
  TransformTables tables = mdct_tables(model);
  step->model_ = std::make_unique<CodecModel>(model, tables, step->parameters_);
  step->model_->set_recompute(config.run.recompute);
  step->quantizer_ = make_quantizer(config, step->parameters_);
  step->objective_ = std::make_unique<Objective>(config, step->discriminator_parameters_);
  return step;
}

Result<void> TrainingStep::initialize(const Tensor& pcm) {
  if (!config_.model.from.empty()) {
    auto file = read_model_file(config_.model.from);
    if (!file) return file.error();
    model_->set_tables(file->tables);
    NamedTensors values = file->weights;
    for (const auto& own :
         parameters_.values()) {  // a model file has no projection to the teacher: it starts anew
      if (own.first.starts_with(Distiller::kPrefix)) values.push_back(own);
    }
    if (auto ok = parameters_.set_values(values); !ok) return ok.error();
    if (auto ok = quantizer_->set_codebooks(file->codebooks); !ok) return ok.error();
  } else {
    if (config_.model.start == ModelConfig::Start::transform) {
      start_as_transform_codec(*model_, parameters_, pcm, tape_);
    }
    start_codebooks(*model_, *quantizer_, pcm, tape_);
  }
  make_optimizers();
  return {};
}

void TrainingStep::make_optimizers() {
  optimizer_ = std::make_unique<AdamW>(parameters_.items(), adamw_options(config_.optimizer));
  average_ = std::make_unique<WeightAverage>(parameters_.items(), config_.optimizer.ema);
  if (!discriminator_parameters_.items().empty()) {
    discriminator_optimizer_ = std::make_unique<AdamW>(discriminator_parameters_.items(),
                                                       adamw_options(config_.discriminator_optimizer));
  }
}

std::vector<std::string> TrainingStep::loss_names() const {
  std::vector<std::string> names = objective_->terms();
  names.emplace_back("commitment");
  if (distiller_) names.emplace_back("distillation");
  if (!discriminator_parameters_.items().empty()) names.emplace_back("discriminator");
  return names;
}

// The losses that do not go through the sound: [1].
Tensor TrainingStep::beside_the_sound(const Quantized& quantized, const Batch& batch, LossValues& values) {
  values.emplace_back("commitment", *quantized.commitment.f32());
  Tensor sum = ops::affine(tape_, quantized.commitment, static_cast<float>(config_.losses.commitment));
  if (quantized.codebook_loss.defined()) sum = ops::add(tape_, sum, quantized.codebook_loss);
  if (distiller_) {
    const Tensor distillation = distiller_->loss(tape_, quantized.first, batch);
    values.emplace_back("distillation", *distillation.f32());
    sum = ops::add(tape_, sum,
                   ops::affine(tape_, distillation, static_cast<float>(config_.losses.distillation)));
  }
  return sum;
}

Result<void> TrainingStep::discriminate(const Tensor& output, const Tensor& target, StepReport& report,
                                        const std::string& batch) {
  const Tensor loss = objective_->discriminator_loss(tape_, output, target, steps_);
  report.losses.emplace_back("discriminator", *loss.f32());
  tape_.backward(loss);
  const OptimizerConfig& options = config_.discriminator_optimizer;
  const double rate =
      learning_rate(schedule_of(options, config_.run.steps), steps_ - first_step_of_discriminators(config_));
  auto norm = discriminator_optimizer_->step(tape_.pool(), rate, options.clip);
  discriminator_parameters_.clear_gradients();
  if (!norm) return with_place(norm.error(), steps_, batch);
  return {};
}

Result<StepReport> TrainingStep::run(const Batch& batch, const std::string& name) {
  StepReport report;
  Stopwatch watch(report);
  Random random(static_cast<std::uint64_t>(config_.run.seed), kDropoutStream,
                static_cast<std::uint64_t>(steps_));
  const std::vector<int> active = sample_active(random, static_cast<int>(batch.audio.dim(0)),
                                                quantizer_->codebooks(), dropout_options(config_.quantizer));
  const Tensor latents = model_->encode(tape_, batch.audio);
  const Quantized quantized = quantizer_->forward(tape_, latents, active, /*collect=*/true);
  const Tensor decoded = model_->decode(tape_, quantized.latents);
  // Decoded sound comes pre_skip samples late.
  const std::int64_t skip = model_->config().pre_skip, length = batch.audio.dim(1) - skip;
  const Tensor output = ops::slice(tape_, decoded, 1, skip, length);
  const Tensor target = ops::slice(tape_, batch.audio, 1, 0, length);
  const Tensor beside = beside_the_sound(quantized, batch, report.losses);
  watch.lap(Phase::forward);

  // Losses of the sound are followed back to it first: their memory is free before the network's is needed.
  const Tensor sound = parameter(output);
  const std::size_t since = tape_.recorded();
  const Tensor loss = (*objective_)(tape_, sound, target, steps_, report.losses);
  if (auto ok = guard_.check(steps_, report.losses, name); !ok) return ok.error();
  Tensor one = tape_.make({1});
  *one.f32() = 1;
  tape_.backward(loss, one, since);
  watch.lap(Phase::losses);

  tape_.backward(ops::add(tape_, beside, ops::sum(tape_, ops::mul(tape_, output, gradient_of(sound)))));
  watch.lap(Phase::backward);

  report.learning_rate = learning_rate(schedule_of(config_.optimizer, config_.run.steps), steps_);
  auto norm = optimizer_->step(tape_.pool(), report.learning_rate, config_.optimizer.clip);
  parameters_.clear_gradients();
  if (!norm) return with_place(norm.error(), steps_, name);
  report.gradient_norm = *norm;
  if (auto ok = quantizer_->update(static_cast<std::uint64_t>(steps_), tape_.pool()); !ok) {
    return with_place(ok.error(), steps_, name);
  }
  average_->update(tape_.pool(), steps_);
  watch.lap(Phase::optimizer);

  if (objective_->discriminators_learn(steps_)) {
    if (auto ok = discriminate(output, target, report, name); !ok) return ok.error();
    watch.lap(Phase::discriminators);
  }
  ++steps_;
  return report;
}

NamedTensors TrainingStep::state() const {
  NamedTensors all;
  const auto add = [&all](const char* prefix, NamedTensors part) {
    for (auto& tensor : with_prefix(prefix, std::move(part))) all.push_back(std::move(tensor));
  };
  add("transform.", {{"basis", model_->tables().basis}, {"scale", model_->tables().scale}});
  add("model.", parameters_.values());
  add("average.", average_->save());
  add("optimizer.", optimizer_->save());
  add("quantizer.", quantizer_->save());
  add("objective.", objective_->state());
  add("guard.", guard_.save());
  if (discriminator_optimizer_) {
    add("discriminators.", discriminator_parameters_.values());
    add("discriminator_optimizer.", discriminator_optimizer_->save());
  }
  return all;
}

Result<void> TrainingStep::restore(std::span<const std::pair<std::string, Tensor>> state,
                                   std::int64_t steps) {
  TransformTables tables;
  for (const auto& [name, tensor] : part_of(state, "transform."))
    (name == "basis" ? tables.basis : tables.scale) = tensor;
  if (!tables.basis.defined() || !tables.scale.defined()) {
    return Error{ErrorCode::mismatch,
                 "expected transform.basis and transform.scale in the checkpoint, got none"};
  }
  model_->set_tables(tables);
  make_optimizers();
  std::vector<Result<void>> results;
  results.push_back(parameters_.set_values(part_of(state, "model.")));
  results.push_back(average_->restore(part_of(state, "average.")));
  results.push_back(optimizer_->restore(part_of(state, "optimizer.")));
  results.push_back(quantizer_->restore(part_of(state, "quantizer.")));
  results.push_back(objective_->restore(part_of(state, "objective.")));
  results.push_back(guard_.restore(part_of(state, "guard.")));
  if (discriminator_optimizer_) {
    results.push_back(discriminator_parameters_.set_values(part_of(state, "discriminators.")));
    results.push_back(discriminator_optimizer_->restore(part_of(state, "discriminator_optimizer.")));
  }
  for (const Result<void>& result : results) {
    if (!result) return result.error();
  }
  steps_ = steps;
  return {};
}

}  // namespace tessera::train
