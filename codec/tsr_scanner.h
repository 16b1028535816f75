// Finds the blocks of `.tsr` in a stream of bytes, behind damage too: whatever follows, the next block whose
// checksum matches is taken, and the bytes before it are reported. Under the reader and drop_codebooks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "codec/byte_source.h"
#include "codec/tsr_format.h"

namespace tessera::tsr {

/// A run of bytes that is no block.
struct Damage {
  std::uint64_t begin = 0, end = 0;
  const char* problem = nullptr;
  SegmentBlock cut;  ///< the segment that seems to begin at `begin`; unchecked, frames 0 when there is none
  std::string text() const;  ///< "bytes 345 to 520: <problem>"
};

struct Block {
  enum class Kind { header, metadata, segment, trailer, end } kind = Kind::end;
  std::uint64_t offset = 0;
  std::span<const std::byte>
      bytes;  ///< valid until the scanner's next call; empty for a header that had to be assumed
  std::optional<Damage> damage;  ///< what lies damaged right before it
  HeaderBlock header;
  std::vector<std::pair<std::string, std::string>> metadata;
  SegmentBlock segment;
  TrailerBlock trailer;
};

class Scanner {
 public:
  /// Reads the first header, repairs it, or finds a repetition. Errors: io, format, unsupported.
  static Result<Scanner> open(ByteSource source);

  /// The header that applies to what next() gives.
  const HeaderBlock& header() const { return header_; }
  /// Of the header that open() found: what is damaged in it or before it.
  const std::optional<Damage>& damage_at_start() const { return start_damage_; }
  /// The next block. A stream whose header is lost begins with an assumed one. Errors: io.
  Result<Block> next();
  /// Goes on at `offset`, in a stream with this header and with no frame before `frame`. Errors: io.
  Result<void> seek(std::uint64_t offset, std::uint64_t frame, const HeaderBlock& header);
  const ByteSource& source() const { return source_; }
  std::uint64_t offset() const {
    return offset_ + passed_;
  }  ///< of the first byte that next() has not passed
  /// Up to `bytes` bytes at `offset` of a source that can seek; leaves the scanner where it was. Errors: io.
  Result<Bytes> read_at(std::uint64_t offset, std::size_t bytes);

 private:
  explicit Scanner(ByteSource source) : source_(std::move(source)) {}

  std::span<const std::byte> window() const { return std::span(buffer_).subspan(begin_, end_ - begin_); }
  /// Makes the window hold `bytes` bytes if the source has so many.
  Result<void> fill(std::size_t bytes);
  void skip(std::size_t bytes);
  Result<Parsed> parse_at_window(Block& block);
  Result<bool> repair_at_window(Block& block);
  Result<bool> find_header();

  ByteSource source_;
  Bytes buffer_;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;
  bool source_ended_ = false;
  std::size_t passed_ = 0;  // of the window: the block that next() gave last

  HeaderBlock header_;
  std::optional<Damage> start_damage_;
  bool between_streams_ = false;  // a trailer has passed: a header must follow
  std::uint64_t next_frame_ = 0;
  std::uint64_t work_ = 0, scanned_ = 0;  // bytes looked at in vain behind damage, and bytes of damage
};

}  // namespace tessera::tsr
