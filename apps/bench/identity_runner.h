// No codec at all: 16-bit PCM in a WAV file. What it scores is the upper end of every metric, and any delay
// or damage that shows here is the suite's own.
#pragma once

#include <memory>
#include <string>

#include "apps/bench/codec_runner.h"

namespace tessera::bench {

std::unique_ptr<CodecRunner> make_identity_runner(const std::string& name = "identity");

}  // namespace tessera::bench
