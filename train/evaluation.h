// How good a model in training is: held-out recordings through its weights file and the codec that everybody
// uses.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "train/data/dataset.h"
#include "train/log.h"
#include "train/report.h"

namespace tessera::train {

struct EvaluationOptions {
  int clips = 12;  ///< recordings that are decoded, spread evenly over the dataset
  int coded_clips =
      96;              ///< those that are coded, for how evenly codewords are used; some tokens per codeword
  double seconds = 5;  ///< of each, at most
  int examples = 3;    ///< clips that become examples
  std::string folder = {};  ///< of the run: sounds and pictures go to its examples/
};

struct Evaluation {
  Metrics metrics = {};  ///< as evaluation_columns() names them
  std::vector<ReportExample> examples = {};
};

/// Numbers of codebooks that are evaluated: powers of two up to all, and all.
std::vector<int> evaluated_prefixes(int codebooks);
/// heldout_error_<n> (normalized squared error of the waveform) and heldout_log_mel_<n> for each prefix,
/// heldout_perplexity (the least of all codebooks) and heldout_perplexity_mean.
std::vector<std::string> evaluation_columns(int codebooks);

/// Codes the clips with the weights file at `model`. Errors: those of loading it, io.
Result<Evaluation> evaluate(const std::string& model, const Dataset& dataset, std::int64_t step,
                            const EvaluationOptions& options, ThreadPool& pool);

}  // namespace tessera::train
