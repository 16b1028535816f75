// Semantic distillation in a training run: the teacher's features of all recordings, computed once, and the
// projection that the first codebook's output goes through.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/autograd/tape.h"
#include "core/result.h"
#include "train/config.h"
#include "train/data/crops.h"
#include "train/data/dataset.h"
#include "train/losses/distillation.h"
#include "train/parameters.h"
#include "train/teachers/teacher.h"

namespace tessera::train {

class Distiller {
 public:
  /// Names of its parameters begin so.
  static constexpr std::string_view kPrefix = "distillation.";

  /// Adds `distillation.weight` [D, E] and `.bias` to `parameters` and asks the teacher for the features of
  /// every recording, which are standardized over all frames; `progress` hears of each. Errors: those of the
  /// teacher; usage: the rates of teacher and codec are no multiples of one another.
  static Result<std::unique_ptr<Distiller>> open(
      const TrainConfig& config, const Dataset& dataset, Parameters& parameters, ThreadPool& pool,
      const std::function<void(std::int64_t, std::int64_t)>& progress);

  /// Crops must begin at a multiple of so many samples.
  std::int64_t align() const { return teacher_frame_; }
  /// The loss [1] of the first codebook's output `first` [B, T, D] for a batch.
  Tensor loss(Tape& tape, const Tensor& first, const Batch& batch) const;

 private:
  Distiller() = default;
  void standardize();

  Tensor weight_, bias_;
  std::vector<Tensor> features_;  // of the recordings, [frames, E]
  int dimension_ = 0;
  std::int64_t teacher_frame_ = 1;  // samples
  DistillationOptions options_;
};

}  // namespace tessera::train
