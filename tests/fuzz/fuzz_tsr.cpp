// Any bytes into the reader of the container, read whole in several ways: as a pipe in small pieces, seeking,
// and through drop_codebooks. Half of the inputs get their checksums put right first, so that the parsers
// behind them are reached.
#include <algorithm>
#include <cstdlib>

#include "codec/crc32c.h"
#include "codec/tsr_format.h"
#include "codec/tsr_reader.h"
#include "codec/tsr_writer.h"

namespace {

using tessera::TsrReader;
using tessera::tsr::Bytes;

/// Makes the header's checksum right, and that of a segment, metadata or trailer right behind it that seems
/// whole.
void put_checksums_right(Bytes& file) {
  using namespace tessera::tsr;
  const auto seal = [&](std::size_t begin, std::size_t end) {
    Bytes sum;
    put_u32(sum, tessera::crc32c(std::span(file).subspan(begin, end - begin)));
    std::copy(sum.begin(), sum.end(), file.begin() + static_cast<std::ptrdiff_t>(end));
  };
  if (file.size() < kHeaderFixed) return;
  const std::size_t header_end = kHeaderFixed + std::to_integer<std::size_t>(file[4]);
  if (header_end + 4 > file.size()) return;
  constexpr char kMagic[] = {'T', 'S', 'R', 1};
  for (std::size_t i = 0; i < 4; ++i) file[i] = static_cast<std::byte>(kMagic[i]);
  seal(0, header_end);
  HeaderBlock header;
  if (parse_header(file, header).status != Parsed::Status::ok) return;
  for (std::size_t at = header_end + 4; at < file.size();) {
    const auto block = std::span<const std::byte>(file).subspan(at);
    SegmentBlock segment;
    TrailerBlock trailer;
    std::vector<std::pair<std::string, std::string>> metadata;
    Parsed parsed = parse_segment(block, header.header, segment);
    if (parsed.status == Parsed::Status::bad && parsed.size <= 1) parsed = parse_trailer(block, trailer);
    if (parsed.status == Parsed::Status::bad && parsed.size <= 1) parsed = parse_metadata(block, metadata);
    if (parsed.status != Parsed::Status::bad || parsed.size <= 1 || parsed.size + 4 > block.size()) return;
    seal(at, at + parsed.size);
    at += parsed.size + 4;
  }
}

void check(bool ok) {
  if (!ok) std::abort();
}

void read_all(tessera::ByteSource source, bool seek) {
  auto reader = TsrReader::open(std::move(source));
  if (!reader) return;
  do {
    if (seek) check(static_cast<bool>(reader->seek(3)));
    while (true) {
      const std::uint64_t at = reader->frames();
      const auto segment = reader->next();
      check(static_cast<bool>(segment));
      if (!*segment) break;
      const tessera::TsrSegment& got = **segment;
      check(got.first_frame == at && reader->frames() == at + got.frames);
      check(got.lost == !got.reason.empty());
      const auto per_frame =
          static_cast<std::uint64_t>(reader->header().channels) * reader->header().codebook_sizes.size();
      check(got.tokens.size() == (got.lost ? 0 : got.frames * per_frame));
      for (std::size_t i = 0; i < got.tokens.size(); ++i)
        check(got.tokens[i] >= 0 &&
              got.tokens[i] < reader->header().codebook_sizes[i % reader->header().codebook_sizes.size()]);
    }
    const auto more = reader->next_stream();
    if (!more || !*more) return;
  } while (true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto mode = static_cast<unsigned>(data[0]);
  Bytes file(bytes.begin() + 1, bytes.end());
  if ((mode & 1) != 0) put_checksums_right(file);
  tessera::ByteSource source = tessera::memory_source(file);
  if ((mode & 2) != 0) {  // a pipe in pieces of 5 bytes
    source.read = [read = source.read](std::span<std::byte> out) {
      return read(out.first(std::min<std::size_t>(out.size(), 5)));
    };
    source.seek = nullptr;
    source.size.reset();
  }
  read_all(std::move(source), (mode & 6) == 4);
  if ((mode & 8) != 0) {
    Bytes out;
    const auto sink = [&out](std::span<const std::byte> block) -> tessera::Result<void> {
      out.insert(out.end(), block.begin(), block.end());
      return {};
    };
    if (tessera::drop_codebooks(tessera::memory_source(file), sink, 1))
      read_all(tessera::memory_source(out), false);
  }
  return 0;
}
