// What a key of the configuration takes, in words: for help and for errors.
#pragma once

#include <string>

#include "train/config_fields.h"

namespace tessera::train {

/// "a whole number from 1 to 64", "a list of texts", "\"f32\" or \"bf16\"".
std::string expected(const Field& field);

}  // namespace tessera::train
