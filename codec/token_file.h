// Tokens as files that other programs read: .npy (int32 [codebooks, frames], or [channels, codebooks, frames]
// for several channels), .jsonl (one header line, then one line per frame and channel) and .raw (int32
// little-endian, [frames, channels, codebooks], no header). Uncompressed: the packed format is the container.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/byte_sink.h"
#include "core/result.h"

namespace tessera {

/// At most this many tokens in one frame of all channels.
inline constexpr int kMaxTokensPerFrame = 16384;

/// What a token file is about. Zero and empty mean "not known".
struct TokenLayout {
  std::string family;
  int sample_rate_hz = 0;
  double frame_rate_hz = 0;
  int channels = 1;
  int codebooks = 0;                ///< tokens per frame and channel
  std::vector<int> codebook_sizes;  ///< one per codebook, or empty
};

/// All tokens of a file.
struct Tokens {
  TokenLayout layout;  ///< codebooks is that of the file
  std::int64_t frames = 0;
  std::vector<std::int32_t> values;  ///< [frames, channels, codebooks]

  /// One frame, [channels, codebooks].
  std::span<const std::int32_t> frame(std::int64_t index) const;
};

enum class TokenFormat { npy, jsonl, raw };

/// By the ending of the name, `.npy`, `.jsonl` or `.raw`; otherwise an error (usage) that lists them.
Result<TokenFormat> token_format_of(std::string_view path);

/// Reads a file for a model described by `expected`. A .npy or .jsonl file may hold fewer codebooks than
/// expected, not more; .raw needs expected.codebooks (else an error, usage) and has exactly these. Every
/// token is checked against its codebook's size when known, and is never negative. Errors: io, usage, format
/// (with line number or byte offset), mismatch (another family, rate, channels, codebooks).
Result<Tokens> read_tokens(const std::string& path, const TokenLayout& expected);
/// The same from memory; `name` stands for the file name in errors.
Result<Tokens> parse_tokens(std::span<const std::byte> bytes, TokenFormat format, const TokenLayout& expected,
                            const std::string& name);

/// Writes tokens frame by frame. jsonl and raw go to the sink frame by frame. A .npy has its frame count in
/// front and its frames innermost, so its tokens are kept in memory until finish(): 4 bytes each, some
/// megabytes per hour of speech.
class TokenWriter {
 public:
  /// Creates the file, its format by the ending; it appears when finish() succeeds. Errors: io, usage. Throws
  /// UsageError for a layout without codebooks or channels, or whose sizes are for another number of
  /// codebooks.
  static Result<TokenWriter> create(const std::string& path, TokenLayout layout);
  /// Writes into `sink`. Throws UsageError as above.
  TokenWriter(ByteSink sink, TokenFormat format, TokenLayout layout);
  TokenWriter(TokenWriter&&) noexcept;
  TokenWriter& operator=(TokenWriter&&) noexcept;
  ~TokenWriter();

  /// One frame, [channels, codebooks]; UsageError for another number of tokens, a negative one or one beyond
  /// its codebook. Errors: io.
  Result<void> push(std::span<const std::int32_t> frame);
  /// Writes what is left. Nothing may follow (UsageError). Errors: io.
  Result<void> finish();

 private:
  struct State;
  explicit TokenWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera
