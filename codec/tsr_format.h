// The blocks of `.tsr` as bytes (docs/bitstream.md): fields, headers, metadata, segments, trailers. Shared by
// the writer and the reader; users include codec/tsr_writer.h and codec/tsr_reader.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/tsr.h"

namespace tessera::tsr {

using Bytes = std::vector<std::byte>;

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kHeaderTag = 'T';    // of "TSR" and the version
constexpr std::uint8_t kSegmentTag = 0xa0;  // + track * 4 + kCoded + kShort
constexpr std::uint8_t kCoded = 2, kShort = 1;
constexpr std::uint8_t kMetadataTag = 0xd0;
constexpr std::uint8_t kTrailerTag = 0xe0, kIndexedTrailerTag = 0xe1;
constexpr std::size_t kHeaderFixed = 5;  // magic, version, length of the body
constexpr std::size_t kMaxHeader = kHeaderFixed + 255 + 4;
constexpr std::uint64_t kMaxFrames = std::uint64_t{1} << 32;  // of a stream
constexpr std::int64_t kMaxSegmentTokens = 1 << 20;
constexpr std::size_t kMaxMetadata = 4096, kMaxMetadataEntries = 64;
constexpr std::size_t kMaxIndex = 512;

void put_u8(Bytes& out, std::uint8_t value);
void put_u16(Bytes& out, std::uint16_t value);
void put_u32(Bytes& out, std::uint32_t value);
void put_u64(Bytes& out, std::uint64_t value);
/// Seven bits a byte, the low ones first; the high bit says that more follow.
void put_varint(Bytes& out, std::uint64_t value);
std::size_t varint_bytes(std::uint64_t value);
void put_text(Bytes& out, std::string_view text);  ///< varint length, bytes
/// The CRC-32C of everything from `start` on.
void put_crc(Bytes& out, std::size_t start);

/// Takes fields off the front of a block. A field that is not there yet reads as 0 and says so in wanted().
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint64_t number(std::size_t bytes);
  /// A varint up to `most`; a larger or needlessly long one makes the block bad.
  std::uint64_t varint(std::uint64_t most);
  std::span<const std::byte> take(std::size_t bytes);
  std::string text(std::size_t most);
  std::size_t position() const { return position_; }
  /// Bytes that the block has at least, when they are more than there are; else 0.
  std::size_t wanted() const { return wanted_; }
  bool bad() const { return bad_; }
  bool good() const { return !bad_ && wanted_ == 0; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0, wanted_ = 0;
  bool bad_ = false;
};

/// What became of parsing a block.
struct Parsed {
  enum class Status { ok, more, bad, unsupported } status = Status::bad;
  std::size_t size = 0;           ///< ok: of the block. more: bytes needed at least. bad: bytes looked at
  const char* problem = nullptr;  ///< bad, unsupported: why
};

/// A header with what only the file knows.
struct HeaderBlock {
  TsrHeader header;
  bool repeated = false;  ///< a repetition, not the start of a stream
  bool metadata_follows = false;
};

struct SegmentBlock {
  int track = 0;
  std::uint64_t first_frame = 0;
  std::uint32_t frames = 0;
  bool coded = false;  ///< layers are byte-aligned, each packed or entropy-coded; else all packed in one
  std::vector<std::uint32_t> layer_bytes;      ///< coded only: of each layer's code; 0: packed
  std::size_t payload = 0, payload_bytes = 0;  ///< within the block
};

struct IndexEntry {
  std::uint64_t frame, offset;  ///< a segment's first frame, its bytes from the start of the stream
};

struct TrailerBlock {
  std::uint64_t frames = 0;
  std::uint64_t trim = 0;  ///< samples to drop at the end
  bool indexed = false;
  std::vector<IndexEntry> index;
  std::uint64_t offset = 0;  ///< indexed only: of the trailer itself, from the start of the stream
};

Bytes header_bytes(const HeaderBlock& block);
Bytes metadata_bytes(const TsrHeader& header);
Bytes trailer_bytes(const TrailerBlock& block);

Parsed parse_header(std::span<const std::byte> bytes, HeaderBlock& out);
Parsed parse_metadata(std::span<const std::byte> bytes,
                      std::vector<std::pair<std::string, std::string>>& out);
Parsed parse_segment(std::span<const std::byte> bytes, const TsrHeader& header, SegmentBlock& out);
Parsed parse_trailer(std::span<const std::byte> bytes, TrailerBlock& out);

/// Errors (usage): not UTF-8, an empty key, more than kMaxMetadataEntries or kMaxMetadata bytes.
Result<void> check_metadata(std::span<const std::pair<std::string, std::string>> metadata);

/// Corrects the one byte of a header that is damaged, wherever it is; false when that does not explain the
/// bytes. `bytes` are the first kMaxHeader of the stream, or all there are.
bool repair_header(Bytes& bytes, std::size_t& position);

/// Bytes of one packed layer of a segment.
std::size_t packed_layer_bytes(const TsrHeader& header, int codebook, std::uint32_t frames);
/// Bits of the first `codebooks` layers of a segment, all packed.
std::uint64_t packed_bits(const TsrHeader& header, int codebooks, std::uint32_t frames);

/// Picks the segments that go into the index: every n-th, n doubling so that they never exceed kMaxIndex.
class IndexBuilder {
 public:
  void add(std::uint64_t frame, std::uint64_t offset);
  /// Empty for streams of fewer than 32 segments, where it would cost more than it saves.
  std::vector<IndexEntry> take();

 private:
  std::vector<IndexEntry> entries_;
  std::uint64_t segments_ = 0, every_ = 8;
};

}  // namespace tessera::tsr
