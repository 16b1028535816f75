#include "train/training_run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/atomic_file.h"
#include "core/autograd/conv.h"
#include "core/cpu.h"
#include "train/checkpoint.h"
#include "train/config_options.h"
#include "train/data/loader.h"
#include "train/evaluation.h"
#include "train/log.h"
#include "train/model_file.h"
#include "train/named_state.h"
#include "train/progress_display.h"
#include "train/report.h"
#include "train/training_step.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Means of the losses since the last row of the log; part of a checkpoint, so that a resumed log has the same
// rows.
class Means {
 public:
  void add(const LossValues& values) {
    for (const auto& [name, value] : values) {
      sums_[name].first += value;
      sums_[name].second += 1;
    }
  }
  Metrics take() {
    Metrics means;
    for (const auto& [name, sum] : sums_) means.emplace_back(name, sum.first / sum.second);
    sums_.clear();
    return means;
  }
  NamedTensors save() const {
    NamedTensors state;
    for (const auto& [name, sum] : sums_) {
      Tensor pair = Tensor::zeros({2}, DType::f64);
      pair.as<double>()[0] = sum.first;
      pair.as<double>()[1] = sum.second;
      state.emplace_back(name, std::move(pair));
    }
    return state;
  }
  void restore(const NamedTensors& state) {
    for (const auto& [name, pair] : state) {
      if (pair.dtype() == DType::f64 && pair.size() == 2)
        sums_[name] = {pair.as<double>()[0], pair.as<double>()[1]};
    }
  }

 private:
  std::map<std::string, std::pair<double, double>> sums_;
};

Json position_json(const DataPosition& position) {
  return {{"seed", position.seed},
          {"step", position.step},
          {"fingerprint", position.fingerprint},
          {"recordings", position.recordings},
          {"samples", position.samples}};
}

DataPosition position_of(const Json& json) {
  DataPosition position;
  position.seed = json.at("seed").get<std::uint64_t>();
  position.step = json.at("step").get<std::int64_t>();
  position.fingerprint = json.at("fingerprint").get<std::uint64_t>();
  position.recordings = json.at("recordings").get<std::int64_t>();
  position.samples = json.at("samples").get<std::int64_t>();
  return position;
}

class TrainingRun {
 public:
  TrainingRun(TrainConfig config, RunOptions options)
      : config_(std::move(config)),
        options_(std::move(options)),
        pool_(config_.run.threads),
        display_(stderr, options_.terminal) {}

  Result<RunResult> start();
  Result<RunResult> resume(const LatestCheckpoint& latest);

 private:
  std::string path(const char* name) const { return options_.folder + "/" + name; }
  std::string model_path() const { return path("model.safetensors"); }
  Result<void> open();
  Result<Dataset> open_dataset(const std::vector<std::string>& sources, const char* what);
  Result<void> open_log(std::int64_t resumed_step);
  Tensor first_clips() const;
  Result<RunResult> loop();
  Result<void> log_row(const StepReport& report);
  Result<void> write_model();
  Result<void> evaluate_model();
  Result<void> save_checkpoint();
  Result<void> write_page();
  TrainingStatus status(const StepReport& report) const;
  void say(const std::string& line);

  TrainConfig config_;
  RunOptions options_;
  ThreadPool pool_;
  ProgressDisplay display_;
  std::optional<Dataset> train_, heldout_;
  std::optional<Crops> crops_;
  std::unique_ptr<TrainingStep> step_;
  std::optional<MetricsLog> log_;
  std::optional<CheckpointWriter> checkpoints_;
  Means means_;
  Metrics row_;                         // of the log, as far as it is known
  std::vector<CodebookHealth> health_;  // as the last row of the log has it
  std::vector<ReportExample> examples_;
  std::vector<std::string> messages_;
};

void TrainingRun::say(const std::string& line) {
  messages_.push_back(line);
  if (!options_.quiet) display_.print("tessera: train: " + line);
}

Result<Dataset> TrainingRun::open_dataset(const std::vector<std::string>& sources, const char* what) {
  auto dataset = Dataset::open(dataset_options(config_, sources, path("cache")));
  if (!dataset) return dataset.error();
  for (const std::string& line : dataset->report().lines()) say(std::string(what) + ": " + line);
  return dataset;
}

// Everything up to the first weights.
Result<void> TrainingRun::open() {
  auto train = open_dataset(config_.data.train, "data");
  if (!train) return train.error();
  train_.emplace(std::move(*train));
  if (!config_.data.heldout.empty()) {
    auto heldout = open_dataset(config_.data.heldout, "held out");
    if (!heldout) return heldout.error();
    heldout_.emplace(std::move(*heldout));
  }
  auto step = TrainingStep::make(config_, pool_);
  if (!step) return step.error();
  step_ = std::move(*step);
  CropOptions crops = crop_options(config_);
  if (config_.losses.distillation > 0) {
    say("asking the teacher for features of " + std::to_string(train_->recordings().size()) + " recordings");
    auto distiller = Distiller::open(config_, *train_, step_->parameters(), pool_, {});
    if (!distiller) return distiller.error();
    crops.align = (*distiller)->align();
    step_->set_distiller(std::move(*distiller));
  }
  crops_.emplace(*train_, crops);
  if (config_.run.precision == Precision::bf16 && !ops::bf16_products()) {
    say("this CPU has no bf16 products: they are f32");
  }
  return {};
}

Result<void> TrainingRun::open_log(std::int64_t resumed_step) {
  std::vector<std::string> columns = step_->loss_names();
  columns.insert(columns.end(), {"gradient_norm", "learning_rate", "dead_codes"});
  for (int i = 0; i < config_.model.codebooks; ++i) columns.push_back("perplexity_" + std::to_string(i + 1));
  for (const std::string& column : evaluation_columns(config_.model.codebooks)) columns.push_back(column);
  auto log = MetricsLog::open(path("log.csv"), columns, resumed_step);
  if (!log) return log.error();
  log_.emplace(std::move(*log));
  auto checkpoints = CheckpointWriter::open(
      {.folder = path("checkpoints"), .keep = config_.run.keep, .keep_every = config_.run.keep_every},
      resumed_step, messages_);
  if (!checkpoints) return checkpoints.error();
  checkpoints_.emplace(std::move(*checkpoints));
  return {};
}

// Some minutes of the data, for statistics: two dozen frames per codeword, drawn apart from the training's.
Tensor TrainingRun::first_clips() const {
  CropOptions options = crops_->options();
  options.seed ^= 0x5eed;
  options.gain_min_db = options.gain_max_db = 0;
  const std::int64_t frames = options.length / config_.model.samples_per_frame();
  options.batch =
      static_cast<int>(std::clamp<std::int64_t>(24 * config_.model.codebook_size / frames, 1, 4096));
  return Crops(*train_, options).batch(0).audio;
}

Result<RunResult> TrainingRun::start() {
  std::error_code failed;
  fs::create_directories(options_.folder, failed);
  if (failed) return Error{ErrorCode::io, "cannot make " + options_.folder + ": " + failed.message()};
  if (fs::exists(path("config.json"))) {
    return Error{ErrorCode::usage, "expected a folder without a run, got " + options_.folder +
                                       ", which has one; --resume goes on with it"};
  }
  if (auto ok = open(); !ok) return ok.error();
  say("first weights");
  if (auto ok = step_->initialize(first_clips()); !ok) return ok.error();
  if (auto ok = open_log(0); !ok) return ok.error();
  if (auto ok = save_checkpoint(); !ok) return ok.error();
  if (auto ok = checkpoints_->wait(); !ok) return ok.error();
  // Last: a folder with a configuration has what it takes to resume.
  auto file = AtomicFile::create(path("config.json"));
  if (!file) return file.error();
  if (auto ok = file->write(to_json(config_) + "\n"); !ok) return ok.error();
  if (auto ok = file->commit(); !ok) return ok.error();
  return loop();
}

Result<RunResult> TrainingRun::resume(const LatestCheckpoint& latest) {
  for (const std::string& message : latest.messages) say(message);
  if (auto ok = open(); !ok) return ok.error();
  const Checkpoint& checkpoint = latest.checkpoint;
  const Json metadata = Json::parse(checkpoint.metadata, nullptr, /*allow_exceptions=*/false);
  try {
    if (auto ok = crops_->check(position_of(metadata.at("data"))); !ok) return ok.error();
  } catch (const Json::exception&) {
    return Error{ErrorCode::format, latest.path + ": expected the position in the data, got none"};
  }
  if (auto ok = step_->restore(part_of(checkpoint.tensors, "run."), checkpoint.step); !ok) {
    return Error{ok.error().code, latest.path + ": " + ok.error().message};
  }
  means_.restore(part_of(checkpoint.tensors, "means."));
  if (auto ok = open_log(checkpoint.step); !ok) return ok.error();
  say("going on from step " + std::to_string(checkpoint.step));
  return loop();
}

Result<RunResult> TrainingRun::loop() {
  LoaderOptions loading;
  loading.step = step_->steps();
  BatchLoader loader(*crops_, loading);
  const std::int64_t steps = config_.run.steps;
  bool stopped = false;
  while (step_->steps() < steps && !stopped) {
    const Batch batch = loader.next();
    auto report = step_->run(batch, crops_->name(batch));
    if (!report) {
      if (auto ok = checkpoints_->wait(); !ok) say(ok.error().message);
      return report.error();
    }
    const std::int64_t done = step_->steps();
    means_.add(report->losses);
    stopped = options_.stop && options_.stop();
    const bool last = done == steps;
    const int every = config_.run.examples_every;  // 0: at the end alone
    const bool evaluated = last || (every && done % every == 0);
    const bool logged = evaluated || done % config_.run.log_every == 0;
    if (evaluated || stopped) {
      if (auto ok = write_model(); !ok) return ok.error();
    }
    if (evaluated) {
      if (auto ok = evaluate_model(); !ok) return ok.error();
    }
    if (logged) {
      if (auto ok = log_row(*report); !ok) return ok.error();
    }
    if (last || stopped || done % config_.run.checkpoint_every == 0) {
      if (auto ok = save_checkpoint(); !ok) return ok.error();
      if (auto ok = write_page(); !ok) return ok.error();
    }
    if (!options_.quiet) display_.update(status(*report), logged);
  }
  if (auto ok = checkpoints_->wait(); !ok) return ok.error();
  RunResult result;
  result.steps = step_->steps();
  result.finished = result.steps >= steps;
  result.model = model_path();
  return result;
}

Result<void> TrainingRun::log_row(const StepReport& report) {
  Metrics row = means_.take();
  row.emplace_back("gradient_norm", report.gradient_norm);
  row.emplace_back("learning_rate", report.learning_rate);
  double dead = 0;
  health_ = step_->quantizer().health();
  for (std::size_t i = 0; i < health_.size(); ++i) {
    row.emplace_back("perplexity_" + std::to_string(i + 1), health_[i].perplexity);
    dead += health_[i].unused;
  }
  row.emplace_back("dead_codes", dead);
  step_->quantizer().reset_health();
  row.insert(row.end(), row_.begin(), row_.end());
  row_.clear();
  return log_->append(step_->steps(), row);
}

Result<void> TrainingRun::write_model() {
  const WeightAverage::Swap swap(step_->average());
  const Metadata metadata = {{"training", to_json(config_)}, {"steps", std::to_string(step_->steps())}};
  return write_model_file(model_path(), step_->model(), step_->parameters(), step_->quantizer(), DType::bf16,
                          metadata);
}

Result<void> TrainingRun::evaluate_model() {
  EvaluationOptions options;
  options.folder = options_.folder;
  auto evaluation = evaluate(model_path(), heldout_ ? *heldout_ : *train_, step_->steps(), options, pool_);
  if (!evaluation) return evaluation.error();
  row_ = std::move(evaluation->metrics);
  examples_ = std::move(evaluation->examples);
  return {};
}

Result<void> TrainingRun::save_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.step = step_->steps();
  const Json metadata = {{"config", Json::parse(to_json(config_))},
                         {"data", position_json(crops_->position(checkpoint.step))}};
  checkpoint.metadata = metadata.dump();
  checkpoint.tensors = with_prefix("run.", step_->state());
  for (auto& tensor : with_prefix("means.", means_.save())) checkpoint.tensors.push_back(std::move(tensor));
  return checkpoints_->save(checkpoint);
}

Result<void> TrainingRun::write_page() {
  TrainingReport report;
  report.title = "Training of " + fs::path(options_.folder).filename().string();
  report.facts = {
      {"steps", std::to_string(step_->steps()) + " of " + std::to_string(config_.run.steps)},
      {"recordings", train_->report().summary},
      {"parameters", std::to_string(step_->parameters().count())},
      {"precision", config_.run.precision == Precision::bf16 && ops::bf16_products() ? "bf16" : "f32"},
      {"threads", std::to_string(pool_.threads())},
      {"instruction set", cpu_target()}};
  auto metrics = read_metrics(path("log.csv"));
  if (!metrics) return metrics.error();
  report.metrics = std::move(*metrics);
  // The last row that has them.
  for (const CodebookHealth& health : step_->quantizer().health())
    report.perplexities.push_back(health.perplexity);
  report.codebook_size = config_.model.codebook_size;
  report.examples = examples_;
  report.messages = messages_;
  report.config = to_json(config_);
  return write_report(path("report.html"), report);
}

TrainingStatus TrainingRun::status(const StepReport& report) const {
  TrainingStatus status;
  status.step = step_->steps();
  status.steps = config_.run.steps;
  status.audio_s = static_cast<double>(config_.data.batch) * static_cast<double>(crops_->options().length) /
                   config_.model.sample_rate_hz;
  status.learning_rate = report.learning_rate;
  status.losses = report.losses;
  status.codebooks = health_;
  status.codebook_size = config_.model.codebook_size;
  return status;
}

}  // namespace

Result<RunResult> start_run(const TrainConfig& config, const RunOptions& options) {
  return TrainingRun(config, options).start();
}

Result<RunResult> resume_run(const RunOptions& options, std::int64_t steps) {
  auto config = read_config(options.folder + "/config.json");
  if (!config) return config.error();
  if (steps > 0) config->run.steps = steps;
  auto latest = load_latest(options.folder + "/checkpoints");
  if (!latest) return latest.error();
  return TrainingRun(*config, options).resume(*latest);
}

}  // namespace tessera::train
