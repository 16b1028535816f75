// Checks of a header and the choice of the segment length.
#include "codec/tsr.h"

#include <algorithm>
#include <string_view>

#include "codec/tsr_format.h"

namespace tessera {
namespace {

/// Well-formed UTF-8 without the NUL character: no overlong forms, surrogates or numbers above 10ffff.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead == 0) return false;
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < static_cast<std::size_t>(more)) return false;
    std::uint32_t code = lead & (0x3fu >> more);
    for (int k = 0; k < more; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      code = (code << 6) | (next & 0x3f);
    }
    constexpr std::uint32_t kLeast[] = {0x80, 0x800, 0x10000};
    if (code < kLeast[more - 1] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  }
  return true;
}

bool is_id(std::string_view id) {
  return !id.empty() && id.size() <= 32 &&
         id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string_view::npos;
}

Error out_of_range(const std::string& field, const std::string& expected, std::int64_t got) {
  return {ErrorCode::usage, "expected " + field + " " + expected + ", got " + std::to_string(got)};
}

}  // namespace

std::int64_t TsrHeader::bits_per_frame() const {
  std::int64_t bits = 0;
  for (const int size : codebook_sizes) bits += token_bits(size);
  return bits * channels;
}

int tsr_frames_per_segment(const TsrHeader& header) {
  constexpr std::int64_t kLeastBits = 480 * 8;
  const auto frames_in = [&](std::int64_t seconds) {
    return (seconds * header.sample_rate_hz + header.samples_per_frame - 1) / header.samples_per_frame;
  };
  const std::int64_t bits = header.bits_per_frame();
  const std::int64_t wanted = std::max(frames_in(1), std::min((kLeastBits + bits - 1) / bits, frames_in(4)));
  const std::int64_t most = tsr::kMaxSegmentTokens / (std::int64_t{header.channels} * header.codebooks());
  return static_cast<int>(std::min(wanted, most));
}

namespace tsr {

Result<void> check_metadata(std::span<const std::pair<std::string, std::string>> metadata) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata) {
    if (key.empty() || !is_utf8(key) || !is_utf8(value))
      return Error{ErrorCode::usage, "expected metadata as UTF-8 text with a key, got other bytes"};
    bytes += key.size() + value.size();
  }
  if (metadata.size() > kMaxMetadataEntries || bytes > kMaxMetadata)
    return Error{ErrorCode::usage, "expected at most 64 metadata entries of 4096 bytes in all, got " +
                                       std::to_string(metadata.size()) + " of " + std::to_string(bytes)};
  return {};
}

}  // namespace tsr

Result<void> check_tsr_header(const TsrHeader& header) {
  constexpr int kMaxFrame = 1 << 20;
  if (!is_id(header.codec_id))
    return Error{ErrorCode::usage, "expected a codec id of 1 to 32 characters a-z 0-9 . _ -"};
  if (header.sample_rate_hz < 1)
    return out_of_range("a sample rate", "of at least 1 Hz", header.sample_rate_hz);
  if (header.samples_per_frame < 1 || header.samples_per_frame > kMaxFrame)
    return out_of_range("samples per frame", "from 1 to 1048576", header.samples_per_frame);
  if (header.pre_skip < 0 || header.pre_skip > kMaxFrame)
    return out_of_range("pre-skip samples", "from 0 to 1048576", header.pre_skip);
  if (header.channels < 1 || header.channels > 255)
    return out_of_range("channels", "from 1 to 255", header.channels);
  if (header.codebooks() < 1 || header.codebooks() > 255)
    return out_of_range("codebooks", "from 1 to 255", header.codebooks());
  for (const int size : header.codebook_sizes)
    if (size < 2 || size > 65536) return out_of_range("codebook sizes", "from 2 to 65536", size);
  if (header.track_type != TsrTrackType::audio)
    return out_of_range("track type", "0 (audio)", static_cast<int>(header.track_type));
  const std::int64_t most = tsr::kMaxSegmentTokens / (std::int64_t{header.channels} * header.codebooks());
  if (header.frames_per_segment < 0 || header.frames_per_segment > most)
    return out_of_range("frames per segment", "from 1 to " + std::to_string(most), header.frames_per_segment);
  if (auto checked = tsr::check_metadata(header.metadata); !checked) return checked;
  const std::size_t bytes = tsr::header_bytes({header, false, false}).size();
  if (bytes > tsr::kMaxHeader)
    return out_of_range("a header", "of at most 264 bytes (too many different codebook sizes)",
                        static_cast<std::int64_t>(bytes));
  return {};
}

double true_kbps(std::uint64_t bytes, std::uint64_t samples, int sample_rate_hz) {
  if (samples == 0) return 0;
  return static_cast<double>(bytes) * 8 * sample_rate_hz / static_cast<double>(samples) / 1000;
}

}  // namespace tessera
