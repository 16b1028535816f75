// The two kinds of input that `tessera decode` takes, each from its file to a finished sound file.
#pragma once

#include <cstdint>
#include <memory>

#include "apps/commands.h"
#include "codec/codec.h"
#include "codec/media.h"
#include "codec/token_file.h"
#include "core/result.h"

namespace tessera::app {

/// What was done, for the summary.
struct Decoded {
  std::int64_t samples = 0;      ///< per channel
  std::int64_t lost_frames = 0;  ///< concealed
  std::int64_t clipped = 0;      ///< samples that did not fit the integer range
  bool damaged = false;
  int channels = 0, codebooks = 0;
  double wall_s = 0;
};

/// The output file as the options want it; removed on a signal.
Result<AudioWriter> create_output(const DecodeOptions& options, const CodecInfo& info, int channels,
                                  Interrupt& interrupt);

/// A .tsr file or pipe: damage is concealed and reported. Errors: those of the file, mismatch (made with
/// other weights).
Result<Decoded> decode_tsr(const DecodeOptions& options, std::shared_ptr<const Codec> codec,
                           Session& session);
/// A file of tokens, read whole. All frames become sound: there is no exact length in such a file.
Result<Decoded> decode_tokens(const DecodeOptions& options, TokenFormat format,
                              const std::shared_ptr<const Codec>& codec, Session& session);

}  // namespace tessera::app
