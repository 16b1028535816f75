// A training run as a folder: configuration, log, report, checkpoints, examples and the model. The loop
// around TrainingStep. It can be killed at any moment: resume() goes on from the last checkpoint and comes to
// the bits of a run never stopped. docs/train-a-codec.md says what lies where.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "train/config.h"

namespace tessera::train {

struct RunOptions {
  std::string folder = {};          ///< of the run
  std::function<bool()> stop = {};  ///< asked after each step: true saves a checkpoint and ends the run
  bool terminal = false;            ///< whether standard error shows a block that is redrawn
  bool quiet = false;               ///< no lines about what goes on
};

/// How a run ended.
struct RunResult {
  std::int64_t steps = 0;  ///< done
  bool finished = false;   ///< all of them
  std::string model = {};  ///< the weights file
};

/// Starts a run in an empty or new folder. Errors: usage (there is a run already), io, those of the data;
/// damaged: a loss or gradient was not finite or exploded (the last good checkpoint is kept).
Result<RunResult> start_run(const TrainConfig& config, const RunOptions& options);
/// Goes on with the run in the folder, to `steps` in all if that is above 0. The learning rate follows the
/// new number.
Result<RunResult> resume_run(const RunOptions& options, std::int64_t steps = 0);

}  // namespace tessera::train
