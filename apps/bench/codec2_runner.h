// Codec 2 (D. Rowe, "Techniques for Harmonic Sinusoidal Coding", 1997, and libcodec2): telephone-band speech
// at 0.7 to 3.2 kbps. Files are frames of whole bytes one behind the other, as `c2enc` writes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

struct Codec2Options {
  std::vector<std::string> modes = {"700C", "1300", "2400", "3200"};
  std::string name = {};  ///< empty: "codec2"
};

/// Error: unsupported (not built in), usage (no such mode). libcodec2 draws the phases of unvoiced sounds
/// from one random sequence per process, so decoded samples differ a little from one call to the next.
Result<std::unique_ptr<CodecRunner>> make_codec2_runner(const Codec2Options& options = {});

/// Why there is no Codec 2 in this build; empty: there is.
std::string codec2_absence();

}  // namespace tessera::bench
