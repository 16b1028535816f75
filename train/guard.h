// Watches the terms of the loss: a run that has gone wrong should end with a line that says where, not go on
// for hours. Each term is compared with its own running mean.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "core/result.h"
#include "train/parameters.h"

namespace tessera::train {

struct GuardOptions {
  double factor = 50;             ///< a term this many times its running mean is too large
  int patience = 3;               ///< so many steps on end: an error
  double decay = 0.99;            ///< of the running mean
  std::int64_t settle = 100;      ///< first values of a term, which only make the mean
  double least_reference = 1e-3;  ///< a running mean below this counts as this
};

class LossGuard {
 public:
  explicit LossGuard(const GuardOptions& options = {}) : options_(options) {}

  /// Error (damaged): a term is NaN or infinite, or was too large `patience` times on end. It names step,
  /// term and `batch` (what the step was trained on). A term of exactly 0 is not in use and left out.
  Result<void> check(std::int64_t step, std::span<const std::pair<std::string, double>> terms,
                     const std::string& batch);

  /// Each term as f64 [3]: running mean, values seen, too large on end.
  NamedTensors save() const;
  /// Takes what save() gave. Error (mismatch): a tensor that is none of these; nothing changed.
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state);

 private:
  struct Term {
    double mean = 0, seen = 0, large = 0;
  };

  GuardOptions options_;
  std::map<std::string, Term, std::less<>> terms_;
};

}  // namespace tessera::train
