// What the keys of a configuration must be to one another.
#pragma once

#include <optional>
#include <string>

#include "train/config.h"

namespace tessera::train {

/// The first pair of values that do not fit, as "section: key: ..."; nothing if all do.
std::optional<std::string> contradiction(const TrainConfig& config);

}  // namespace tessera::train
