// EnCodec (Défossez et al. 2022, arXiv 2210.13438), the causal 24 kHz model: a SEANet with an LSTM, reflect
// padding in every layer, up to 32 codebooks at 75 frames a second. Leaves out the 48 kHz model and the
// entropy-coding language model.
#pragma once

#include "codec/model.h"

namespace tessera {

/// Reads facebook/encodec_24khz in its published (transformers) layout.
extern const Family encodec_family;

}  // namespace tessera
