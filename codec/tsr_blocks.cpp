// The blocks of `.tsr`, written and parsed field by field. Parsing checks everything: lengths before anything
// is read or allocated by them, then the checksum.
#include <algorithm>

#include "codec/crc32c.h"
#include "codec/tsr_format.h"

namespace tessera::tsr {
namespace {

constexpr std::uint8_t kMetadataFollows = 0x40,
                       kRepeated = 0x80;  // of a header's first byte, above the coder and the track
constexpr std::uint64_t kMaxMetadataBody = kMaxMetadata + kMaxMetadataEntries * 4;

Parsed bad(const char* problem, std::size_t looked_at) {
  return {Parsed::Status::bad, looked_at, problem};
}

/// The end of every parse: are the fields whole and right, and does the checksum behind them match?
Parsed finish(Cursor& cursor, std::span<const std::byte> bytes, const char* block) {
  const std::size_t covered = cursor.position();
  const std::uint64_t stored = cursor.number(4);
  if (cursor.bad()) return bad(block, covered);
  if (cursor.wanted() != 0) return {Parsed::Status::more, cursor.wanted(), nullptr};
  if (stored != crc32c(bytes.first(covered))) return bad(block, covered);
  return {Parsed::Status::ok, cursor.position(), nullptr};
}

}  // namespace

Bytes header_bytes(const HeaderBlock& block) {
  const TsrHeader& header = block.header;
  const auto coder = static_cast<std::uint8_t>(header.entropy_coder);
  Bytes body;
  put_u8(body, static_cast<std::uint8_t>(coder | (static_cast<std::uint8_t>(header.track_type) << 4) |
                                         (block.metadata_follows ? kMetadataFollows : 0) |
                                         (block.repeated ? kRepeated : 0)));
  put_u64(body, header.weights_hash);
  if (coder >= 2) put_u64(body, header.model_hash);
  put_varint(body, static_cast<std::uint64_t>(header.sample_rate_hz));
  put_varint(body, static_cast<std::uint64_t>(header.samples_per_frame));
  put_varint(body, static_cast<std::uint64_t>(header.pre_skip));
  put_varint(body, static_cast<std::uint64_t>(header.frames_per_segment));
  put_u8(body, static_cast<std::uint8_t>(header.channels));
  put_text(body, header.codec_id);
  const std::vector<int>& sizes = header.codebook_sizes;
  for (auto run = sizes.begin(); run != sizes.end();) {
    const auto end = std::find_if(run, sizes.end(), [&](int size) { return size != *run; });
    put_varint(body, static_cast<std::uint64_t>(*run - 1));
    put_u8(body, static_cast<std::uint8_t>(end - run));
    run = end;
  }

  Bytes out;
  for (const char c : {'T', 'S', 'R'}) put_u8(out, static_cast<std::uint8_t>(c));
  put_u8(out, kVersion);
  put_u8(out, static_cast<std::uint8_t>(body.size()));
  out.insert(out.end(), body.begin(), body.end());
  put_crc(out, 0);
  return out;
}

Parsed parse_header(std::span<const std::byte> bytes, HeaderBlock& out) {
  constexpr const char* kProblem = "the header's checksum does not match";
  Cursor frame(bytes);
  for (const char c : {'T', 'S', 'R'})
    if (frame.u8() != static_cast<std::uint8_t>(c) && frame.good()) return bad("no header", 3);
  const std::uint8_t version = frame.u8();
  const std::span<const std::byte> body_bytes = frame.take(frame.u8());
  const Parsed parsed = finish(frame, bytes, kProblem);
  if (parsed.status != Parsed::Status::ok) return parsed;
  if (version != kVersion) return {Parsed::Status::unsupported, parsed.size, "another version of the format"};

  out = {};
  Cursor body(body_bytes);
  TsrHeader& header = out.header;
  const std::uint8_t flags = body.u8();
  out.repeated = (flags & kRepeated) != 0;
  out.metadata_follows = (flags & kMetadataFollows) != 0;
  header.entropy_coder = static_cast<EntropyCoder>(flags & 0x0f);
  header.weights_hash = body.number(8);
  if ((flags & 0x0f) >= 2) header.model_hash = body.number(8);
  header.sample_rate_hz = static_cast<int>(body.varint(0x7fffffff));
  header.samples_per_frame = static_cast<int>(body.varint(1 << 20));
  header.pre_skip = static_cast<int>(body.varint(1 << 20));
  header.frames_per_segment = static_cast<int>(body.varint(kMaxSegmentTokens));
  header.channels = body.u8();
  header.codec_id = body.text(32);
  while (body.good() && body.position() < body_bytes.size()) {
    const auto size = static_cast<int>(body.varint(65535)) + 1;
    const std::uint8_t run = body.u8();
    header.codebook_sizes.insert(header.codebook_sizes.end(), run, size);
  }
  if ((flags & 0x30) != 0) return {Parsed::Status::unsupported, parsed.size, "a track that is not audio"};
  if (!body.good() || header.frames_per_segment == 0 || !check_tsr_header(header))
    return bad("the header holds values out of range", parsed.size);
  return parsed;
}

Bytes metadata_bytes(const TsrHeader& header) {
  Bytes body;
  for (const auto& [key, value] : header.metadata) {
    put_text(body, key);
    put_text(body, value);
  }
  Bytes out;
  put_u8(out, kMetadataTag);
  put_varint(out, body.size());
  out.insert(out.end(), body.begin(), body.end());
  put_crc(out, 0);
  return out;
}

Parsed parse_metadata(std::span<const std::byte> bytes,
                      std::vector<std::pair<std::string, std::string>>& out) {
  constexpr const char* kProblem = "the metadata's checksum does not match";
  Cursor frame(bytes);
  if (frame.u8() != kMetadataTag && frame.good()) return bad("no metadata", 1);
  const std::span<const std::byte> text = frame.take(frame.varint(kMaxMetadataBody));
  const Parsed parsed = finish(frame, bytes, kProblem);
  if (parsed.status != Parsed::Status::ok) return parsed;
  out.clear();
  Cursor body(text);
  while (body.good() && body.position() < text.size()) {
    std::string key = body.text(kMaxMetadata);
    std::string value = body.text(kMaxMetadata);
    out.emplace_back(std::move(key), std::move(value));
  }
  if (!body.good() || !check_metadata(out))
    return bad("the metadata is not UTF-8 text within its limits", parsed.size);
  return parsed;
}

Parsed parse_segment(std::span<const std::byte> bytes, const TsrHeader& header, SegmentBlock& out) {
  constexpr const char* kProblem = "the segment's checksum does not match";
  out = {};
  Cursor cursor(bytes);
  const std::uint8_t tag = cursor.u8();
  if (cursor.good() && (tag & 0xf0) != kSegmentTag) return bad("no segment", 1);
  out.track = (tag >> 2) & 3;
  if (out.track != 0) return bad("a segment of a track without a header", 1);
  out.coded = (tag & kCoded) != 0;
  out.first_frame = cursor.varint(kMaxFrames);
  const auto full = static_cast<std::uint32_t>(header.frames_per_segment);
  out.frames = full;
  if ((tag & kShort) != 0) {
    out.frames = static_cast<std::uint32_t>(cursor.varint(full - 1));
    if (cursor.good() && out.frames == 0) return bad("a segment without frames", cursor.position());
  }
  out.payload_bytes = (packed_bits(header, header.codebooks(), out.frames) + 7) / 8;
  if (out.coded) {
    out.payload_bytes = 0;
    for (int k = 0; k < header.codebooks() && cursor.good(); ++k) {
      const std::size_t packed = packed_layer_bytes(header, k, out.frames);
      const auto coded = static_cast<std::uint32_t>(cursor.varint(packed));
      out.layer_bytes.push_back(coded);
      out.payload_bytes += coded == 0 ? packed : coded;
    }
  }
  out.payload = cursor.position();
  cursor.take(out.payload_bytes);
  return finish(cursor, bytes, kProblem);
}

Bytes trailer_bytes(const TrailerBlock& block) {
  Bytes out;
  put_u8(out, block.indexed ? kIndexedTrailerTag : kTrailerTag);
  put_varint(out, block.frames);
  put_varint(out, block.trim);
  if (block.indexed) {
    put_varint(out, block.index.size());
    IndexEntry last{0, 0};
    for (const IndexEntry& entry : block.index) {
      put_varint(out, entry.frame - last.frame);
      put_varint(out, entry.offset - last.offset);
      last = entry;
    }
    put_varint(out, block.offset - last.offset);
    put_u16(out, static_cast<std::uint16_t>(out.size()));
  }
  put_crc(out, 0);
  return out;
}

Parsed parse_trailer(std::span<const std::byte> bytes, TrailerBlock& out) {
  constexpr const char* kProblem = "the trailer's checksum does not match";
  constexpr std::uint64_t kMaxStep = std::uint64_t{1} << 48;  // bytes between entries
  out = {};
  Cursor cursor(bytes);
  const std::uint8_t tag = cursor.u8();
  if (cursor.good() && tag != kTrailerTag && tag != kIndexedTrailerTag) return bad("no trailer", 1);
  out.indexed = tag == kIndexedTrailerTag;
  out.frames = cursor.varint(kMaxFrames);
  out.trim = cursor.varint(kMaxFrames << 20);
  if (out.indexed) {
    const std::uint64_t entries = cursor.varint(kMaxIndex);
    IndexEntry last{0, 0};
    for (std::uint64_t i = 0; i < entries && cursor.good(); ++i) {
      last.frame += cursor.varint(kMaxFrames);
      last.offset += cursor.varint(kMaxStep);
      out.index.push_back(last);
    }
    out.offset = last.offset + cursor.varint(kMaxStep);
    const std::size_t length = cursor.position();
    if (cursor.number(2) != length && cursor.good()) return bad(kProblem, length);
  }
  return finish(cursor, bytes, kProblem);
}

}  // namespace tessera::tsr
