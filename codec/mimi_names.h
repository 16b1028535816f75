// kyutai's own naming of Mimi's tensors, told in the names of the transformers layout, which the model uses
// throughout.
#pragma once

#include <string>

#include "codec/weights.h"

namespace tessera {

/// Whether the file is in kyutai's layout.
bool has_kyutai_names(const SafeTensors& file);
/// "encoder.layers.0.conv.weight" -> "encoder.model.0.conv.conv.weight", and so on.
std::string kyutai_name(const std::string& name);
/// The projection `which` ('q', 'k' or 'v') [channels, channels] of the attention whose tensors start with
/// `prefix`, rows in the transformers order. kyutai's layout holds all three in one tensor and pairs
/// neighbouring channels for the rotary embedding: row h * D + r * D/2 + i there is h * D + 2 * i + r.
Weight mimi_projection(Weights& weights, const std::string& prefix, char which, int channels, int heads);

}  // namespace tessera
