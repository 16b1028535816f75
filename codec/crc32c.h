// CRC-32C (Castagnoli, as in iSCSI, RFC 3720): the checksum of the container, and where a single damaged byte
// lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tessera {

/// The checksum of `bytes`; give the result of the bytes before to go on. 0xe3069283 for the digits
/// "123456789".
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// One byte to correct: `bytes[position] ^= difference`.
struct ByteRepair {
  std::size_t position;
  std::byte difference;
};

/// Which single damaged byte in a message of `length` bytes turns its checksum by `syndrome` (computed ^
/// expected, not 0)? Nothing when no single byte explains it. The answer is the only one for lengths up to
/// 20000: no two errors of one byte each that lie less than that apart have the same syndrome (found by
/// trying all).
std::optional<ByteRepair> locate_damaged_byte(std::uint32_t syndrome, std::size_t length);

}  // namespace tessera
