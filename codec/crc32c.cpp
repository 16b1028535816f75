// CRC-32C, a byte at a time, from tables made at compile time. Fast enough for tokens: no intrinsics.
#include "codec/crc32c.h"

#include <array>

namespace tessera {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // bits reversed: the lowest bit of a byte comes first

struct Tables {
  std::array<std::uint32_t, 256> step{};  // the remainder of a byte
  std::array<std::uint8_t, 256>
      by_top{};  // which byte has a remainder with this top byte: they are all different
};

constexpr Tables make_tables() {
  Tables tables;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables.step[byte] = crc;
    tables.by_top[crc >> 24] = static_cast<std::uint8_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  for (const std::byte byte : bytes)
    crc = (crc >> 8) ^ kTables.step[(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

std::optional<ByteRepair> locate_damaged_byte(std::uint32_t syndrome, std::size_t length) {
  // The checksum is linear: an error of one byte adds its remainder, moved on by the bytes behind it. So move
  // the syndrome back byte by byte until it is such a remainder.
  for (std::size_t position = length; position-- > 0;) {
    const std::uint8_t byte = kTables.by_top[syndrome >> 24];
    if (kTables.step[byte] == syndrome) return ByteRepair{position, std::byte{byte}};
    syndrome = ((syndrome ^ kTables.step[byte]) << 8) | byte;
  }
  return std::nullopt;
}

}  // namespace tessera
