// Small models with weights made on the spot, in the published file layouts, so that every family is tested everywhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codec/codec.h"

namespace tessera::test {

/// "mimi", "encodec" and "tessera".
const std::vector<std::string>& small_model_names();

/// The bytes of a small model's weights file.
std::string small_weights(const std::string& family);
/// It, loaded.
std::shared_ptr<const Codec> small_model(const std::string& family, const LoadOptions& options = {});

}  // namespace tessera::test
