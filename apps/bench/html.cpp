// UTF-8 is checked as the Unicode standard's table 3-7 has it: no overlong forms, no surrogates.
#include "apps/bench/html.h"

#include <cstdint>

#include "train/chart.h"

namespace tessera::bench {
namespace {

/// Bytes of the UTF-8 character at the front of `text`; 0: none that a page may hold.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0u;
  };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return (first >= 0x20 && first != 0x7F) || first == '\t' || first == '\n' ? 1 : 0;
  if (first >= 0xC2 && first <= 0xDF) {
    if (first == 0xC2 && byte(1) < 0xA0) return 0;  // control characters once more
    return continues(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    return continues(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool second = continues(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text.substr(at));
    valid += size ? text.substr(at, size) : std::string_view("\xEF\xBF\xBD");
    at += size ? size : 1;
  }
  return train::escape_html(valid);
}

std::string element(std::string_view name, std::string_view content, std::string_view attributes) {
  std::string text = "<";
  text.append(name);
  if (!attributes.empty()) text.append(" ").append(attributes);
  return text.append(">").append(content).append("</").append(name).append(">\n");
}

std::string table_row(std::string_view cells) {
  return element("tr", cells);
}

std::string number_cell(std::string_view text, std::string_view tooltip) {
  std::string attributes = "class=\"n\"";
  if (!tooltip.empty()) attributes += " title=\"" + html_text(tooltip) + "\"";
  return element("td", html_text(text), attributes);
}

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < here ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= here ? kDigits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::string data_uri(std::string_view type, std::span<const std::byte> bytes) {
  return "data:" + std::string(type) + ";base64," + base64(bytes);
}

}  // namespace tessera::bench
