// Opus (RFC 6716) by libopus in real Ogg Opus files (RFC 7845): 20 ms packets, variable bitrate,
// complexity 10. Leaves out stereo, other packet lengths, forward error correction and the deep-learning
// parts of version 1.5.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

enum class OpusApplication : std::uint8_t { voip, audio };

struct OpusOptions {
  std::vector<double> kbps = {6, 9, 12, 16, 24};
  OpusApplication application = OpusApplication::voip;
  std::string name = {};  ///< empty: "opus", or "opus_audio"
};

/// Error: unsupported (not built in), usage (a bitrate outside 6 to 510 kbps).
Result<std::unique_ptr<CodecRunner>> make_opus_runner(const OpusOptions& options = {});

/// Why there is no Opus in this build; empty: there is.
std::string opus_absence();

}  // namespace tessera::bench
