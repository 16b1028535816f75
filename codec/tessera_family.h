// Our own codecs: a transform front end and causal blocks at the frame rate, listed in the weights'
// configuration so that later models can differ in their blocks. docs/tessera-family.md describes the
// configuration and every block.
#pragma once

#include "codec/model.h"

namespace tessera {

extern const Family tessera_family;

}  // namespace tessera
