// Small helpers of the file readers for numbers and names that a file claims and nobody has checked yet.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// Bytes of an array with these extents (each >= 0), or nothing when some product of extents leaves int64.
/// Extents beside a zero are checked too, so that Shape::size() cannot overflow whatever order it multiplies
/// in.
inline std::optional<std::int64_t> checked_bytes(std::span<const std::int64_t> extents,
                                                 std::int64_t element_bytes) {
  std::int64_t product = element_bytes;
  bool empty = false;
  for (const std::int64_t extent : extents) {
    if (extent == 0) {
      empty = true;
    } else if (product > std::numeric_limits<std::int64_t>::max() / extent) {
      return std::nullopt;
    } else {
      product *= extent;
    }
  }
  return empty ? 0 : product;
}

/// Text from a file for use in an error line: in quotes, control characters as '?', at most 80 bytes.
inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, kMost))
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return result + (text.size() > kMost ? "...\"" : "\"");
}

}  // namespace tessera
