// Pieces of an HTML page that stands alone: text made safe, elements, files embedded as data: addresses.
// Left out: a parser, templates, anything that needs a script.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tessera::bench {

/// Text as the content of an element or of a quoted attribute, in HTML and in SVG files: markup escaped;
/// bytes that are not UTF-8, and control characters other than tab and line feed, become U+FFFD.
std::string html_text(std::string_view text);

/// `<name attributes>content</name>`; `attributes` come ready, with values quoted.
std::string element(std::string_view name, std::string_view content, std::string_view attributes = "");

/// A row of a table from its finished cells.
std::string table_row(std::string_view cells);
/// A cell with a number, to the right.
std::string number_cell(std::string_view text, std::string_view tooltip = "");

/// RFC 4648, section 4, with padding.
std::string base64(std::span<const std::byte> bytes);
/// `data:<type>;base64,<bytes>`.
std::string data_uri(std::string_view type, std::span<const std::byte> bytes);

}  // namespace tessera::bench
