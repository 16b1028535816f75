// An exponential moving average of the weights (Polyak and Juditsky 1992 in its usual form): what is
// evaluated and exported. It follows quickly at first: the decay grows with the steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "train/parameters.h"

namespace tessera::train {

class WeightAverage {
 public:
  /// Starts at the values that the parameters have. `decay` in [0, 1): the part that a step keeps.
  WeightAverage(std::span<const Parameter> parameters, double decay);

  /// After optimizer step `step` (from 0): average += (1 - d) (value - average), d = min(decay, (1 + step) /
  /// (10 + step)).
  void update(ThreadPool& pool, std::int64_t step);

  /// Names and averages; they share the storage.
  NamedTensors save() const;
  /// Takes what save() gave. Error (mismatch): nothing changed.
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state);

  /// While it lives, the parameters hold the average, and the average holds their values: for evaluation and
  /// export. No update or optimizer step meanwhile.
  class Swap {
   public:
    explicit Swap(WeightAverage& average) : average_(average) { average_.swap(); }
    ~Swap() { average_.swap(); }
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

   private:
    WeightAverage& average_;
  };

 private:
  void swap();

  double decay_;
  std::vector<Parameter> parameters_;
  std::vector<Tensor> averages_;  // of parameters_, by index
};

}  // namespace tessera::train
