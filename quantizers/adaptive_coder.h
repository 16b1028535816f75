// Tokens coded by counts that are learnt on the way (docs/bitstream.md). Made for layers of a few dozen
// tokens out of thousands: before each token a flag says whether it has occurred yet; one that has is coded
// by its count, a new one evenly among those not seen. So repetition pays at once, and tokens without
// statistics cost hardly more than packed.
#pragma once

#include <memory>

#include "quantizers/token_coder.h"

namespace tessera {

/// The coder of EntropyCoder::adaptive. It keeps 12 bytes per token of the largest codebook seen.
std::unique_ptr<TokenCoder> make_adaptive_coder();

}  // namespace tessera
