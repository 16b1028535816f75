// One mechanism for all damage: where no block begins, try one byte further. Checksums decide, so that false
// starts within tokens do no harm; a budget keeps the work linear however a file is forged.
#include "codec/tsr_scanner.h"

#include <algorithm>
#include <cstring>

#include "core/untrusted.h"

namespace tessera::tsr {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::uint64_t kHeaderSearch =
    1 << 24;  // bytes of a damaged start in which a repetition is looked for

// Checksums of false starts may cost so many bytes, and more with the length of the damage. Honest files stay
// far below: one byte in sixty looks like the start of a segment, and its lengths rarely make sense.
constexpr std::uint64_t kFreeWork = 1 << 22, kWorkPerByte = 16;

std::string not_tsr(std::span<const std::byte> window) {
  if (window.empty()) return "expected a .tsr file, got an empty one";
  std::string start;
  for (const std::byte byte : window.first(std::min<std::size_t>(window.size(), 4)))
    start += static_cast<char>(byte);
  if (start.starts_with("TSR"))
    return "expected a .tsr header, got a damaged one at byte 0 and no repetition of it";
  return "expected a .tsr file, which begins with \"TSR\", got " + in_quotes(start);
}

}  // namespace

std::string Damage::text() const {
  if (end == begin + 1) return "byte " + std::to_string(begin) + ": " + problem;
  return "bytes " + std::to_string(begin) + " to " + std::to_string(end - 1) + ": " + problem;
}

Result<void> Scanner::fill(std::size_t bytes) {
  while (end_ - begin_ < bytes && !source_ended_) {
    if (end_ == buffer_.size()) {
      if (begin_ > 0) {
        std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.end(), buffer_.begin());
        end_ -= begin_;
        begin_ = 0;
      } else {  // grown by what has come, never by what a length claims
        buffer_.resize(std::max(kBuffer, 2 * buffer_.size()));
      }
    }
    auto got = source_.read(std::span(buffer_).subspan(end_));
    if (!got) return got.error();
    source_ended_ = *got == 0;
    end_ += *got;
  }
  return {};
}

void Scanner::skip(std::size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

Result<Parsed> Scanner::parse_at_window(Block& block) {
  for (;;) {
    const auto tag = static_cast<std::uint8_t>(window().front());
    Parsed parsed{Parsed::Status::bad, 1, "no block begins here"};
    if (tag == kHeaderTag) {
      block.kind = Block::Kind::header;
      parsed = parse_header(window(), block.header);
    } else if (tag == kMetadataTag) {
      block.kind = Block::Kind::metadata;
      parsed = parse_metadata(window(), block.metadata);
    } else if ((tag & 0xf0) == kSegmentTag) {
      block.kind = Block::Kind::segment;
      parsed = parse_segment(window(), header_.header, block.segment);
    } else if (tag == kTrailerTag || tag == kIndexedTrailerTag) {
      block.kind = Block::Kind::trailer;
      parsed = parse_trailer(window(), block.trailer);
    }
    if (parsed.status != Parsed::Status::more) return parsed;
    if (auto filled = fill(parsed.size); !filled) return filled.error();
    if (window().size() < parsed.size) return Parsed{Parsed::Status::bad, 1, "the file ends within a block"};
  }
}

/// Whether the window begins with a header that one corrected byte makes whole.
Result<bool> Scanner::repair_at_window(Block& block) {
  if (auto filled = fill(kMaxHeader); !filled) return filled.error();
  const std::span<const std::byte> start = window().first(std::min(window().size(), kMaxHeader));
  Bytes bytes(start.begin(), start.end());
  std::size_t position = 0;
  if (!repair_header(bytes, position)) return false;
  passed_ = parse_header(bytes, block.header).size;
  block.kind = Block::Kind::header;
  block.damage =
      Damage{offset_ + position, offset_ + position + 1, "the header was damaged here; repaired", {}};
  return true;
}

/// Skips to the next header that is whole, within kHeaderSearch bytes.
Result<bool> Scanner::find_header() {
  while (offset_ < kHeaderSearch) {
    if (auto filled = fill(kMaxHeader); !filled) return filled.error();
    const std::span<const std::byte> bytes = window();
    if (bytes.empty()) return false;
    if (parse_header(bytes, header_).status == Parsed::Status::ok) return true;
    const auto next = std::find(bytes.begin() + 1, bytes.end(), std::byte{kHeaderTag});
    skip(static_cast<std::size_t>(next - bytes.begin()));
  }
  return false;
}

Result<Scanner> Scanner::open(ByteSource source) {
  Scanner scanner(std::move(source));
  if (auto filled = scanner.fill(kMaxHeader); !filled) return filled.error();
  const Parsed parsed = parse_header(scanner.window(), scanner.header_);
  if (parsed.status == Parsed::Status::unsupported)
    return Error{
        ErrorCode::unsupported,
        std::string("expected version 1 of the .tsr format with an audio track, got ") + parsed.problem};
  if (parsed.status == Parsed::Status::ok) {
    scanner.passed_ = parsed.size;
    return scanner;
  }
  Block block;
  auto repaired = scanner.repair_at_window(block);
  if (!repaired) return repaired.error();
  if (*repaired) {
    scanner.header_ = std::move(block.header);
    scanner.start_damage_ = block.damage;
    return scanner;
  }
  const std::string problem = not_tsr(scanner.window());
  auto found = scanner.find_header();
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::format, problem};
  if (scanner.source_.seek) {  // with the header known, what lies before it can be read
    if (auto sought = scanner.seek(0, 0, HeaderBlock(scanner.header_)); !sought) return sought.error();
  } else {
    scanner.start_damage_ =
        Damage{0, scanner.offset_, "the header is missing; reading starts where it is repeated", {}};
  }
  return scanner;
}

Result<Block> Scanner::next() {
  skip(passed_);
  passed_ = 0;
  Block block;
  std::optional<Damage> damage;
  for (;;) {
    if (auto filled = fill(1); !filled) return filled.error();
    if (window().empty()) {
      block = {};
      break;
    }
    Parsed parsed{Parsed::Status::bad, 0, nullptr};
    if (!damage || work_ <= kFreeWork + kWorkPerByte * scanned_) {
      auto attempt = parse_at_window(block);
      if (!attempt) return attempt.error();
      parsed = *attempt;
    }
    if (parsed.status == Parsed::Status::ok) {
      passed_ = parsed.size;
      break;
    }
    if (damage) {
      work_ += parsed.size;
    } else {
      if (between_streams_) {
        auto repaired = repair_at_window(block);
        if (!repaired) return repaired.error();
        if (*repaired) break;
      }
      damage = Damage{offset_, offset_, parsed.problem, block.segment};
    }
    skip(1);
    ++scanned_;
  }
  if (damage) {
    damage->end = offset_;
    block.damage = damage;
  }
  block.offset = offset_;
  const bool ends = block.kind == Block::Kind::end;
  const bool goes_back = block.kind == Block::Kind::segment && block.segment.first_frame < next_frame_;
  if (block.kind == Block::Kind::header) {
    if (between_streams_) block.header.repeated = false;
    if (!block.header.repeated) {
      header_ = block.header;
      next_frame_ = 0;
    }
    between_streams_ = false;
  } else if (!ends && (between_streams_ || goes_back)) {
    // A stream whose header is lost: it is taken to be like the one before, and the block is read again.
    block.kind = Block::Kind::header;
    block.header = header_;
    block.header.metadata_follows = false;
    passed_ = 0;
    between_streams_ = false;
    next_frame_ = 0;
  }
  if (block.kind == Block::Kind::segment) next_frame_ = block.segment.first_frame + block.segment.frames;
  if (block.kind == Block::Kind::trailer) between_streams_ = true;
  block.bytes = window().first(passed_);
  return block;
}

Result<void> Scanner::seek(std::uint64_t offset, std::uint64_t frame, const HeaderBlock& header) {
  if (auto sought = source_.seek(offset); !sought) return sought;
  begin_ = end_ = passed_ = 0;
  offset_ = offset;
  source_ended_ = false;
  between_streams_ = false;
  next_frame_ = frame;
  header_ = header;
  return {};
}

Result<Bytes> Scanner::read_at(std::uint64_t offset, std::size_t bytes) {
  if (auto sought = source_.seek(offset); !sought) return sought.error();
  Bytes out(bytes);
  std::size_t done = 0;
  while (done < bytes) {
    auto got = source_.read(std::span(out).subspan(done));
    if (!got) return got.error();
    if (*got == 0) break;
    done += *got;
  }
  out.resize(done);
  if (auto sought = source_.seek(offset_ + (end_ - begin_)); !sought) return sought.error();
  return out;
}

}  // namespace tessera::tsr
