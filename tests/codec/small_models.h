// Small models with weights made on the spot, in the published file layouts, so that every family is tested
// everywhere.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "codec/codec.h"

namespace tessera::test {

/// "mimi", "encodec", "tessera" and "tessera_gain".
const std::vector<std::string>& small_model_names();

/// Sizes of a Mimi-shaped model; by default a small one for tests.
struct MimiSizes {
  int filters = 4, channels = 64, hidden = 96, layers = 2;
  int codebook_dim = 16, codebook_size = 50, codebooks = 4;
  std::array<int, 4> ratios{4, 3, 2, 2};
};
/// The published model's.
inline constexpr MimiSizes kPublishedMimi{64, 512, 2048, 8, 256, 2048, 32, {8, 6, 5, 4}};

/// The bytes of a Mimi weights file with random weights.
std::string mimi_weights(const MimiSizes& sizes);

/// The bytes of a small model's weights file.
std::string small_weights(const std::string& family);
/// It, loaded.
std::shared_ptr<const Codec> small_model(const std::string& family, const LoadOptions& options = {});

}  // namespace tessera::test
