// What tells curves apart: markers, dashes and colours; and the strokes and texts that a chart is made of.
// Colours are after Okabe and Ito (2008), which the colour-blind tell apart; their faint ones are darker
// here, so that text in them can be read.
#pragma once

#include <string>
#include <string_view>

namespace tessera::bench {

enum class TextAnchor : unsigned char { start, middle, end };

std::string svg_text(double x, double y, TextAnchor anchor, std::string_view text,
                     std::string_view attributes = "");
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view attributes);

/// About how wide a text of `font_px` is; labels are placed by it.
double svg_text_width(std::string_view text, double font_px);

std::string style_colour(int style);
/// Attributes of a curve's line.
std::string style_stroke(int style, bool strong);
/// The marker with its middle at (x, y), `tooltip` shown under the pointer.
std::string style_marker(int style, double x, double y, bool strong, std::string_view tooltip = "");

}  // namespace tessera::bench
