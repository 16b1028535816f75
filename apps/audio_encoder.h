// A media file's sound through an encoder: reads a block, codes every channel as a stream of one batch, hands
// over whole frames. Memory stays that of a block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "apps/report.h"
#include "codec/codec.h"
#include "codec/media.h"
#include "core/function_ref.h"
#include "core/result.h"

namespace tessera::app {

/// Takes one frame, [channels, codebooks].
using TokenSink = FunctionRef<Result<void>(std::span<const std::int32_t>)>;

struct EncodedAudio {
  std::int64_t samples = 0;  ///< per channel, at the codec's rate
  std::int64_t frames = 0;
  double wall_s = 0;     ///< from the first block to the last frame
  bool damaged = false;  ///< part of the input could not be read; it was reported
  double seconds(const CodecInfo& info) const { return static_cast<double>(samples) / info.sample_rate_hz; }
  /// Seconds of audio per second of work.
  double real_time_factor(const CodecInfo& info) const { return wall_s > 0 ? seconds(info) / wall_s : 0; }
};

/// Opens `path` at the codec's rate.
Result<AudioReader> open_audio(const std::string& path, const CodecInfo& info, ChannelMode mono);

/// Codes all of it. Notes of the reader, and that several channels become several streams, go to the report.
Result<EncodedAudio> encode_audio(AudioReader& reader, std::shared_ptr<const Codec> codec,
                                  const StreamOptions& options, Report& report, TokenSink sink);

}  // namespace tessera::app
