// AdamW (Loshchilov and Hutter 2019): Adam with weight decay apart from the gradient, and clipping of the
// gradient by its norm over all parameters. One pass over memory, shared out in fixed blocks: any number of
// threads gives the same bits. Leaves out AMSGrad.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "train/parameters.h"

namespace tessera::train {

/// Factors for the parameters whose name begins with `prefix`.
struct ParameterGroup {
  std::string prefix;
  double learning_rate = 1.0;
  double weight_decay = 1.0;
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  ///< per step, times the learning rate; not for rank 1 (biases, scales)
  std::vector<ParameterGroup> groups = {};  ///< the first that fits a name counts
};

/// The norm of the gradients of all parameters together. Sums in f64, in fixed blocks and a fixed order.
struct GradientNorm {
  double value = 0;
  std::string bad;  ///< the first parameter whose gradient is not finite; empty if there is none
};
GradientNorm gradient_norm(std::span<const Parameter> parameters, ThreadPool& pool);

class AdamW {
 public:
  /// `parameters` are leaves of the tape (Parameters::items()); they are updated in place. Throws UsageError
  /// for a parameter that is not f32 and for options out of range.
  AdamW(std::span<const Parameter> parameters, const AdamWOptions& options);

  /// One step by the gradients that backward() left, which are scaled down to norm `clip` if theirs is larger
  /// (0: never). A parameter without a gradient is left alone. Returns the norm before clipping. Error
  /// (damaged): a gradient is not finite; nothing has changed then.
  Result<double> step(ThreadPool& pool, double learning_rate, double clip = 0);

  /// The state: `<name>.mean`, `<name>.square` (the moments) and `<name>.steps` (i64 [1]) of each parameter.
  /// Shares the storage: copy it to keep it.
  NamedTensors save() const;
  /// Takes what save() gave, in any order. Error (mismatch), nothing changed: a tensor is missing, too many
  /// or of another shape.
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state);

 private:
  struct State {
    Tensor mean, square, steps;
    double learning_rate, weight_decay;  // the group's factor; the decay itself
  };

  AdamWOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<State> states_;  // of parameters_, by index
};

}  // namespace tessera::train
