#include "apps/option_helpers.h"

namespace tessera::app {

CLI::App* add_train(CLI::App& app, TrainOptions& options) {
  CLI::App* train = app.add_subcommand("train", "Train a codec on a folder of recordings");
  auto* config =
      train->add_option("CONFIG", options.config, "What to train: a JSON file (--default-config shows one)");
  auto* out = train->add_option("-o,--out", options.folder, "Folder of the run: made, or empty of runs")
                  ->type_name("FOLDER");
  auto* resume =
      train->add_option("--resume", options.resume, "Go on with the run in this folder")->type_name("FOLDER");
  add_count(*train, "--steps", options.steps, 1, "Steps in all (default: as the configuration says)");
  auto* print = train->add_flag("--default-config", options.default_config,
                                "Print a complete configuration, explained");
  auto* keys =
      train->add_flag("--help-config", options.help_config, "Print all keys with defaults and ranges");
  resume->excludes(config)->excludes(out);
  for (CLI::Option* question : {print, keys}) question->excludes(config)->excludes(resume);
  add_report(*train, options.report, false);
  train->footer(
      "The folder gets log.csv, report.html, examples/, checkpoints/ and model.safetensors, which --model of "
      "the other\n"
      "commands takes. Ctrl-C saves a checkpoint and stops.\n"
      "Examples:\n"
      "  tessera train --default-config > speech.json\n"
      "  tessera train speech.json --out runs/speech\n"
      "  tessera train --resume runs/speech\n"
      "  tessera encode talk.wav talk.tsr --model runs/speech/model.safetensors");
  return train;
}

}  // namespace tessera::app
