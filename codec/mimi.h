// Mimi (Défossez et al. 2024, arXiv 2410.00037): speech at 24 kHz, 12.5 frames a second, a causal SEANet with
// a sliding- window transformer on either side, one semantic and up to 31 acoustic codebooks.
#pragma once

#include "codec/model.h"

namespace tessera {

/// Reads kyutai/mimi in either published layout (transformers' or kyutai's own).
extern const Family mimi_family;

}  // namespace tessera
