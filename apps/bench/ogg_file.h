// Packets of one stream in an Ogg file (RFC 3533), in memory, through libogg. Leaves out chained and
// interleaved streams and seeking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace tessera::bench {

struct OggPacket {
  std::vector<std::byte> bytes = {};
  std::int64_t granule = 0;  ///< time at its end, in the units of the codec; read: -1 inside a page
};

/// A file of packets. The first `headers` have a page each; the others fill pages of `per_page` packets.
std::vector<std::byte> write_ogg(std::span<const OggPacket> packets, std::size_t headers,
                                 std::size_t per_page);

/// All packets of the first stream. Error (format): no Ogg file, or one with a hole.
Result<std::vector<OggPacket>> read_ogg(std::span<const std::byte> file);

/// Bytes of the packets behind the headers.
std::int64_t payload_bytes(std::span<const OggPacket> packets, std::size_t headers);

}  // namespace tessera::bench
