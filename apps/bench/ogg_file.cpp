// libogg cuts pages and computes their checksums; the owner types here only pair its init and clear.
#include "apps/bench/ogg_file.h"

#include <ogg/ogg.h>

#include <algorithm>
#include <string>

namespace tessera::bench {
namespace {

constexpr int kSerial = 1;  // there is one stream, and equal sound shall give equal bytes

class OggStream {
 public:
  explicit OggStream(int serial) { ogg_stream_init(&state_, serial); }
  ~OggStream() { ogg_stream_clear(&state_); }
  OggStream(const OggStream&) = delete;
  OggStream& operator=(const OggStream&) = delete;
  ogg_stream_state* get() { return &state_; }

 private:
  ogg_stream_state state_ = {};
};

class OggSync {
 public:
  OggSync() { ogg_sync_init(&state_); }
  ~OggSync() { ogg_sync_clear(&state_); }
  OggSync(const OggSync&) = delete;
  OggSync& operator=(const OggSync&) = delete;
  ogg_sync_state* get() { return &state_; }

 private:
  ogg_sync_state state_ = {};
};

void append(const unsigned char* data, long size, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(std::span(data, static_cast<std::size_t>(size)));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::byte> write_ogg(std::span<const OggPacket> packets, std::size_t headers,
                                 std::size_t per_page) {
  OggStream stream(kSerial);
  std::vector<std::byte> file;
  const auto end_page = [&] {
    ogg_page page;
    while (ogg_stream_flush(stream.get(), &page) != 0) {
      append(page.header, page.header_len, file);
      append(page.body, page.body_len, file);
    }
  };
  for (std::size_t i = 0; i < packets.size(); ++i) {
    std::vector<std::byte> bytes = packets[i].bytes;  // libogg takes a pointer to what it does not change
    ogg_packet packet = {};
    packet.packet = reinterpret_cast<unsigned char*>(bytes.data());
    packet.bytes = static_cast<long>(bytes.size());
    packet.b_o_s = i == 0;
    packet.e_o_s = i + 1 == packets.size();
    packet.granulepos = packets[i].granule;
    packet.packetno = static_cast<ogg_int64_t>(i);
    ogg_stream_packetin(stream.get(), &packet);
    if (i < headers || (i - headers + 1) % per_page == 0) end_page();
  }
  end_page();
  return file;
}

Result<std::vector<OggPacket>> read_ogg(std::span<const std::byte> file) {
  const Error broken{ErrorCode::format, "expected a whole Ogg file, got one with a hole or none"};
  OggSync sync;
  char* buffer = ogg_sync_buffer(sync.get(), static_cast<long>(file.size()));
  if (!buffer) return broken;
  std::transform(file.begin(), file.end(), buffer, [](std::byte b) { return static_cast<char>(b); });
  ogg_sync_wrote(sync.get(), static_cast<long>(file.size()));

  ogg_page page;
  if (ogg_sync_pageout(sync.get(), &page) != 1) return broken;
  OggStream stream(ogg_page_serialno(&page));
  std::vector<OggPacket> packets;
  int more = 1;
  for (; more == 1; more = ogg_sync_pageout(sync.get(), &page)) {
    if (ogg_stream_pagein(stream.get(), &page) != 0) return broken;
    ogg_packet packet;
    for (int got = 0; (got = ogg_stream_packetout(stream.get(), &packet)) != 0;) {
      if (got < 0) return broken;
      OggPacket& out = packets.emplace_back();
      append(packet.packet, packet.bytes, out.bytes);
      out.granule = packet.granulepos;
    }
  }
  if (more < 0 || ogg_stream_eos(stream.get()) == 0) return broken;
  return packets;
}

std::int64_t payload_bytes(std::span<const OggPacket> packets, std::size_t headers) {
  std::int64_t bytes = 0;
  for (const OggPacket& packet : packets.subspan(std::min(headers, packets.size()))) {
    bytes += static_cast<std::int64_t>(packet.bytes.size());
  }
  return bytes;
}

}  // namespace tessera::bench
