// Fields of `.tsr`, segments' arithmetic, the index, and the repair of a header.
#include "codec/tsr_format.h"

#include <algorithm>

#include "codec/crc32c.h"

namespace tessera::tsr {
namespace {

void put_number(Bytes& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

}  // namespace

void put_u8(Bytes& out, std::uint8_t value) {
  put_number(out, value, 1);
}
void put_u16(Bytes& out, std::uint16_t value) {
  put_number(out, value, 2);
}
void put_u32(Bytes& out, std::uint32_t value) {
  put_number(out, value, 4);
}
void put_u64(Bytes& out, std::uint64_t value) {
  put_number(out, value, 8);
}

void put_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(0x80 | (value & 0x7f)));
  out.push_back(static_cast<std::byte>(value));
}

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

void put_text(Bytes& out, std::string_view text) {
  put_varint(out, text.size());
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

void put_crc(Bytes& out, std::size_t start) {
  put_u32(out, crc32c(std::span(out).subspan(start)));
}

std::span<const std::byte> Cursor::take(std::size_t bytes) {
  if (!good()) return {};
  if (bytes > bytes_.size() - position_) {
    wanted_ = position_ + bytes;
    return {};
  }
  position_ += bytes;
  return bytes_.subspan(position_ - bytes, bytes);
}

std::uint64_t Cursor::number(std::size_t bytes) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const std::byte byte : take(bytes)) {
    value |= std::uint64_t{static_cast<std::uint8_t>(byte)} << shift;
    shift += 8;
  }
  return value;
}

std::uint64_t Cursor::varint(std::uint64_t most) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    const std::uint8_t byte = u8();
    if (!good()) return 0;
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      bad_ = value > most || (byte == 0 && shift > 0);
      return bad_ ? 0 : value;
    }
    if (value > most) break;
  }
  bad_ = true;
  return 0;
}

std::string Cursor::text(std::size_t most) {
  std::string text;
  for (const std::byte byte : take(varint(most))) text += static_cast<char>(byte);
  return text;
}

std::size_t packed_layer_bytes(const TsrHeader& header, int codebook, std::uint32_t frames) {
  const auto bits =
      static_cast<std::uint64_t>(token_bits(header.codebook_sizes[static_cast<std::size_t>(codebook)]));
  return (bits * static_cast<std::uint64_t>(header.channels) * frames + 7) / 8;
}

std::uint64_t packed_bits(const TsrHeader& header, int codebooks, std::uint32_t frames) {
  std::uint64_t bits = 0;
  for (int k = 0; k < codebooks; ++k)
    bits += static_cast<std::uint64_t>(token_bits(header.codebook_sizes[static_cast<std::size_t>(k)]));
  return bits * static_cast<std::uint64_t>(header.channels) * frames;
}

bool repair_header(Bytes& bytes, std::size_t& position) {
  constexpr std::size_t kLength = kHeaderFixed - 1;
  if (bytes.size() < kHeaderFixed) return false;
  const auto syndrome = [&](std::size_t body) {
    const auto covered = std::span(bytes).first(kHeaderFixed + body);
    Cursor stored{std::span(bytes).subspan(covered.size(), 4)};
    return crc32c(covered) ^ static_cast<std::uint32_t>(stored.number(4));
  };
  const auto fits = [&](std::size_t body) { return kHeaderFixed + body + 4 <= bytes.size(); };
  std::vector<std::pair<std::size_t, std::byte>> repairs;  // position, difference
  const auto length = static_cast<std::size_t>(bytes[kLength]);
  if (fits(length)) {
    const std::uint32_t wrong = syndrome(length);
    for (int i = 0; i < 4; ++i)  // a byte of the stored checksum itself
      if (wrong != 0 && (wrong & ~(0xffu << (8 * i))) == 0)
        repairs.emplace_back(kHeaderFixed + length + static_cast<std::size_t>(i),
                             static_cast<std::byte>(wrong >> (8 * i)));
    if (const auto located = locate_damaged_byte(wrong, kHeaderFixed + length); wrong != 0 && located)
      repairs.emplace_back(located->position, located->difference);
  }
  for (std::size_t other = 0; other < 256; ++other) {  // the length: each says where the checksum would be
    if (other == length || !fits(other)) continue;
    bytes[kLength] = static_cast<std::byte>(other);
    if (syndrome(other) == 0) repairs.emplace_back(kLength, static_cast<std::byte>(length ^ other));
  }
  bytes[kLength] = static_cast<std::byte>(length);

  Bytes repaired;
  for (const auto& [where, difference] : repairs) {
    Bytes candidate = bytes;
    candidate[where] ^= difference;
    HeaderBlock block;
    if (parse_header(candidate, block).status != Parsed::Status::ok) continue;
    if (!repaired.empty()) return false;  // two explanations are none
    repaired = std::move(candidate);
    position = where;
  }
  if (repaired.empty()) return false;
  bytes = std::move(repaired);
  return true;
}

void IndexBuilder::add(std::uint64_t frame, std::uint64_t offset) {
  if (segments_++ % every_ != 0) return;
  if (entries_.size() == kMaxIndex) {
    for (std::size_t i = 0; i < kMaxIndex / 2; ++i) entries_[i] = entries_[2 * i];
    entries_.resize(kMaxIndex / 2);
    every_ *= 2;
  }
  entries_.push_back({frame, offset});
}

std::vector<IndexEntry> IndexBuilder::take() {
  constexpr std::uint64_t kLeastSegments = 32;
  return segments_ < kLeastSegments ? std::vector<IndexEntry>{} : std::move(entries_);
}

}  // namespace tessera::tsr
