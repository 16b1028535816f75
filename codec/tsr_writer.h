// Writes `.tsr` (docs/bitstream.md) to a sink that only goes forward: a file, a pipe, memory. Appending to a
// file is writing a second stream behind the first: open the sink at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "codec/byte_source.h"
#include "codec/tsr.h"
#include "core/byte_sink.h"
#include "core/result.h"

namespace tessera {

struct TsrWriterOptions {
  bool index = true;  ///< a seek index in the trailer of streams that have at least 32 segments
  int header_every_seconds =
      60;  ///< repeat the header so often, for readers that join late and for damage; 0: never
};

/// Takes frames, gives blocks. Memory is that of one segment and a seek index of at most 512 entries.
class TsrWriter {
 public:
  /// Writes the header. Errors: usage (check_tsr_header), unsupported (no such entropy coder), those of the
  /// sink.
  static Result<TsrWriter> open(ByteSink sink, TsrHeader header, TsrWriterOptions options = {});
  TsrWriter(TsrWriter&&) noexcept;
  TsrWriter& operator=(TsrWriter&&) noexcept;
  ~TsrWriter();

  /// The header as written, frames_per_segment chosen.
  const TsrHeader& header() const;
  std::uint64_t bytes() const;   ///< written so far
  std::uint64_t frames() const;  ///< pushed so far

  /// One frame, tokens [channels, codebooks]. Throws UsageError for another number of tokens, a token outside
  /// its codebook, or a push after finish(). Errors: those of the sink, again on every later call.
  Result<void> push(std::span<const std::int32_t> tokens);
  /// Ends the current segment early, so that a listener on the other end of a pipe has all that was pushed.
  Result<void> flush();
  /// Writes the rest and the trailer. `total_samples` per channel after decoding, pre-skip and padding
  /// dropped: at most frames() * samples_per_frame - pre_skip (0 when that is negative), UsageError above it.
  Result<void> finish(std::uint64_t total_samples);

 private:
  struct State;
  explicit TsrWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What drop_codebooks did.
struct TsrDropReport {
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t segments = 0;  ///< copied
  std::uint64_t damages =
      0;  ///< damaged stretches left out; a reader of the copy reports their frames as missing
};

/// Copies a file with only its first `codebooks` codebooks, cutting the layers behind them off without
/// decoding any. Errors: usage (not 1 to the number stored), those of reading a header, io.
Result<TsrDropReport> drop_codebooks(ByteSource in, ByteSink out, int codebooks);

}  // namespace tessera
