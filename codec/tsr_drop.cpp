// A copy of a file without its last layers: headers and trailers rewritten, segments cut, no token decoded.
#include <string>
#include <utility>

#include "codec/tsr_scanner.h"
#include "codec/tsr_writer.h"

namespace tessera {
namespace {

using tsr::Bytes;

tsr::HeaderBlock narrowed(tsr::HeaderBlock block, int codebooks) {
  block.header.codebook_sizes.resize(static_cast<std::size_t>(codebooks));
  return block;
}

/// The segment with its first layers only.
Bytes cut_segment(const tsr::Block& block, const TsrHeader& header, int codebooks) {
  const tsr::SegmentBlock& segment = block.segment;
  const auto lengths =
      std::span(segment.layer_bytes).first(segment.coded ? static_cast<std::size_t>(codebooks) : 0);
  std::size_t kept = 0, all_lengths = 0;
  for (const std::uint32_t length : segment.layer_bytes) all_lengths += tsr::varint_bytes(length);

  const auto before_lengths = block.bytes.first(segment.payload - all_lengths);
  Bytes out(before_lengths.begin(), before_lengths.end());
  for (int k = 0; const std::uint32_t length : lengths) {
    tsr::put_varint(out, length);
    kept += length != 0 ? length : tsr::packed_layer_bytes(header, k, segment.frames);
    ++k;
  }
  const std::uint64_t bits = segment.coded ? 8 * kept : tsr::packed_bits(header, codebooks, segment.frames);
  const auto payload = block.bytes.subspan(segment.payload, (bits + 7) / 8);
  out.insert(out.end(), payload.begin(), payload.end());
  if (bits % 8 != 0) out.back() &= static_cast<std::byte>((1u << (bits % 8)) - 1);  // bits of the next layer
  tsr::put_crc(out, 0);
  return out;
}

}  // namespace

Result<TsrDropReport> drop_codebooks(ByteSource in, ByteSink out, int codebooks) {
  auto scanner = tsr::Scanner::open(std::move(in));
  if (!scanner) return scanner.error();
  const int stored = scanner->header().header.codebooks();
  if (codebooks < 1 || codebooks > stored)
    return Error{ErrorCode::usage, "expected to keep 1 to " + std::to_string(stored) + " codebooks, got " +
                                       std::to_string(codebooks)};
  TsrDropReport report;
  std::uint64_t stream_start = 0;
  tsr::IndexBuilder index;
  const auto write = [&](std::span<const std::byte> bytes) {
    report.bytes_out += bytes.size();
    return out(bytes);
  };
  if (scanner->damage_at_start()) ++report.damages;
  auto written = write(tsr::header_bytes(narrowed(scanner->header(), codebooks)));
  while (written) {
    auto next = scanner->next();
    if (!next) return next.error();
    tsr::Block& block = *next;
    if (block.damage) ++report.damages;
    switch (block.kind) {
      case tsr::Block::Kind::end:
        report.bytes_in = scanner->offset();
        return report;
      case tsr::Block::Kind::metadata:
        written = write(block.bytes);
        break;
      case tsr::Block::Kind::header:
        if (block.header.header.codebooks() < codebooks)
          return Error{ErrorCode::mismatch, "byte " + std::to_string(block.offset) +
                                                ": expected a stream of at least " +
                                                std::to_string(codebooks) + " codebooks, got " +
                                                std::to_string(block.header.header.codebooks())};
        if (!block.header.repeated) {
          stream_start = report.bytes_out;
          index = {};
        }
        written = write(tsr::header_bytes(narrowed(block.header, codebooks)));
        break;
      case tsr::Block::Kind::segment:
        index.add(block.segment.first_frame, report.bytes_out - stream_start);
        written = write(cut_segment(block, scanner->header().header, codebooks));
        ++report.segments;
        break;
      case tsr::Block::Kind::trailer:
        block.trailer.index = index.take();
        block.trailer.indexed = block.trailer.indexed && !block.trailer.index.empty();
        block.trailer.offset = report.bytes_out - stream_start;
        written = write(tsr::trailer_bytes(block.trailer));
        break;
    }
  }
  return written.error();
}

}  // namespace tessera
