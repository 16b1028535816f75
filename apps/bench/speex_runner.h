// Speex wideband (16 kHz) by libspeex, constant quality settings, in Ogg Speex files with one 20 ms frame a
// packet. Leaves out the narrow and the ultra-wide band, variable and average bitrates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

struct SpeexOptions {
  std::vector<int> qualities = {2, 4, 6, 8};
  std::string name = {};  ///< empty: "speex"
};

/// Error: unsupported (not built in), usage (a quality outside 0 to 10).
Result<std::unique_ptr<CodecRunner>> make_speex_runner(const SpeexOptions& options = {});

/// Why there is no Speex in this build; empty: there is.
std::string speex_absence();

}  // namespace tessera::bench
