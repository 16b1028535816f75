// Encoders of the ffmpeg command, where it is installed: classic codecs whose libraries the suite does not
// link. Each is an external command (external_runner.h) that ffmpeg both encodes and decodes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

struct FfmpegOptions {
  std::string encoder = {};            ///< as `ffmpeg -encoders` calls it: "libmp3lame"
  std::vector<std::string> kbps = {};  ///< bitrates; empty: those of the table
  std::string name = {};               ///< empty: "ffmpeg_" and the encoder
};

/// An encoder that the suite knows how to use.
struct FfmpegEncoder {
  std::string name = {};
  std::string description = {};
  std::string absence = {};  ///< why it cannot be used here; empty: it can
};

/// All of them; starts ffmpeg once to ask what it has.
std::vector<FfmpegEncoder> ffmpeg_encoders();

/// Errors: usage (an encoder or bitrate that is not known), unsupported (no ffmpeg, or one without the
/// encoder).
Result<std::unique_ptr<CodecRunner>> make_ffmpeg_runner(const FfmpegOptions& options);

}  // namespace tessera::bench
