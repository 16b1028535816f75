// tessera train: a folder of recordings becomes a codec.
#include <atomic>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "train/config.h"
#include "train/training_run.h"

namespace tessera::app {
namespace {

Result<train::RunResult> start_or_resume(const TrainOptions& options, const train::RunOptions& run) {
  if (!options.resume.empty()) return train::resume_run(run, options.steps);
  auto config = train::read_config(options.config);
  if (!config) return config.error();
  if (options.steps > 0) config->run.steps = options.steps;
  return train::start_run(*config, run);
}

}  // namespace

Result<ExitCode> run(const TrainOptions& options, Session& session) {
  if (options.default_config) return run(TextAnswer{train::default_config(), {}}, session);
  if (options.help_config) return run(TextAnswer{train::config_help(), {}}, session);
  if (options.resume.empty() && (options.config.empty() || options.folder.empty())) {
    return Error{ErrorCode::usage, "expected CONFIG and --out FOLDER, or --resume FOLDER, got neither"};
  }
  train::RunOptions run;
  run.folder = options.resume.empty() ? options.folder : options.resume;
  run.terminal = session.report.progress();
  run.quiet = options.report.quiet;
  const std::atomic<bool>& asked = session.interrupt.defer();
  run.stop = [&asked] { return asked.load(); };
  const auto result = start_or_resume(options, run);
  if (!result) return result.error();
  const std::string ending = result->finished ? "finished" : "stopped; --resume " + run.folder + " goes on";
  const Json object = {{"steps", result->steps}, {"finished", result->finished}, {"model", result->model}};
  session.report.summary(object, std::to_string(result->steps) + " steps, " + ending + "; " + result->model);
  return ExitCode::ok;
}

}  // namespace tessera::app
