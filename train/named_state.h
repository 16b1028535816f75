// What the parts of a training run share when their state is saved and restored.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "core/result.h"
#include "train/parameters.h"

namespace tessera::train {

/// Copies the tensors of `from` into those of `to`, whose storage is written. The names must be the same,
/// in any order, each with its shape and dtype; otherwise nothing changes and the error (mismatch) names
/// `what` and the first tensor that does not fit.
Result<void> copy_state(std::span<const std::pair<std::string, Tensor>> from, const NamedTensors& to,
                        const std::string& what);

/// The tensors with `prefix` in front of their names: parts of a checkpoint.
NamedTensors with_prefix(const std::string& prefix, NamedTensors tensors);
/// Those whose names begin with `prefix`, without it.
NamedTensors part_of(std::span<const std::pair<std::string, Tensor>> tensors, const std::string& prefix);

}  // namespace tessera::train
