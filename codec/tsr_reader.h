// Reads `.tsr` (docs/bitstream.md) from a source that only goes forward, or that can seek. Damage costs the
// segments it lies in: the reader finds the next whole segment and reports what is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/byte_source.h"
#include "codec/tsr.h"
#include "core/result.h"

namespace tessera {

/// A run of frames, or the report of one that is lost. A frame's time is its number * samples_per_frame /
/// sample_rate_hz, less the pre-skip. When `lost`, conceal `frames` frames, no more than is sensible (a
/// forged file may say 2^32), and show the user `reason`.
struct TsrSegment {
  std::uint64_t first_frame = 0;
  std::uint64_t frames = 0;          ///< of a lost run: as far as it is known; 0: no frame is lost
  int codebooks = 0;                 ///< in `tokens`
  std::vector<std::int32_t> tokens;  ///< [frames, channels, codebooks]; empty when lost
  int track = 0;
  bool lost = false;
  std::string reason;  ///< one line: "bytes 345 to 520: the segment's checksum does not match"
};

/// Memory is that of one segment (tokens: at most 4 MiB), whatever the file says.
class TsrReader {
 public:
  static constexpr int all_codebooks = 255;

  /// Reads the header (one damaged byte in it is repaired; behind a worse one, the next repetition of it is
  /// looked for). Errors: io, format (not a .tsr file, cut off), unsupported (version, entropy coder, track
  /// type).
  static Result<TsrReader> open(ByteSource source);
  TsrReader(TsrReader&&) noexcept;
  TsrReader& operator=(TsrReader&&) noexcept;
  ~TsrReader();

  const TsrHeader& header() const;
  /// The next segment or report of damage, in order of time, with at most the first `max_codebooks` codebooks
  /// decoded (0: none, which is fast); nothing at the end of the stream. Errors: io.
  Result<std::optional<TsrSegment>> next(int max_codebooks = all_codebooks);
  /// After the end of the stream: goes on to a stream appended behind it, whose frames count from 0 again
  /// (decode it with fresh state); false when there is none. Errors: io, mismatch (codec, rate, channels or
  /// codebooks differ).
  Result<bool> next_stream();

  /// Exact samples per channel, once next() has passed the trailer (it returned nothing); nothing when the
  /// trailer is damaged or missing. Encoders that pad only the last frame make it differ from frames() *
  /// samples_per_frame - pre_skip by less than one frame: hold back one frame of output until the end is
  /// known.
  std::optional<std::uint64_t> total_samples() const;
  /// That, or what the frames so far amount to: frames * samples_per_frame - pre_skip.
  std::uint64_t best_total_samples() const;
  /// Frames passed in the current stream, lost ones included.
  std::uint64_t frames() const;
  std::uint64_t bytes() const;    ///< of the source that next() has passed, all streams
  std::uint64_t damages() const;  ///< lost runs and other damage reported so far

  /// Goes to the segment of the current stream that holds `frame` (a seekable source only: UsageError), or to
  /// its end. Uses the index if there is one, otherwise reads through the stream. Errors: io.
  Result<void> seek(std::uint64_t frame);
  bool can_seek() const;

 private:
  struct State;
  explicit TsrReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera
