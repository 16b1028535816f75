#include "apps/bench/svg_marks.h"

#include <algorithm>
#include <array>

#include "apps/bench/html.h"
#include "train/text.h"

namespace tessera::bench {
namespace {

using train::fixed;

constexpr std::array<const char*, 8> kColours = {"#000000", "#0072b2", "#d55e00", "#009e73",
                                                 "#aa3377", "#8c510a", "#a67c00", "#777777"};
constexpr std::array<const char*, 8> kDashes = {"",    "7 3",  "2 2",         "9 3 2 3",
                                                "4 4", "12 3", "9 3 2 3 2 3", "5 2 1 2"};
// Around (0, 0), about 8 px wide. The first six have an inside, the others are strokes.
constexpr std::array<const char*, 8> kShapes = {
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",                 // circle
    "M-3.7 -3.7H3.7V3.7H-3.7Z",                            // square
    "M0 -4.8L4.7 3.6H-4.7Z",                               // triangle
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",                         // diamond
    "M0 4.8L4.7 -3.6H-4.7Z",                               // triangle on its tip
    "M-2 -5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",                  // fat cross
    "M-4 -4L4 4M-4 4L4 -4",                                // x
    "M0 -5V5M-5 0H5M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",  // star
};

std::size_t of_eight(int style) {
  return static_cast<std::size_t>(std::max(0, style)) % 8;
}

/// Every eight curves the dashes move on by three, so that curves of one marker differ in them.
std::size_t dashes_of(int style) {
  return (of_eight(style) + static_cast<std::size_t>(std::max(0, style)) / 8 * 3) % 8;
}

std::string quoted(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + "\"";
}

}  // namespace

std::string svg_text(double x, double y, TextAnchor anchor, std::string_view text,
                     std::string_view attributes) {
  constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
  std::string all = quoted("x", fixed(x, 1)) + " " + quoted("y", fixed(y, 1)) + " " +
                    quoted("text-anchor", kAnchors[static_cast<std::size_t>(anchor)]);
  if (!attributes.empty()) all.append(" ").append(attributes);
  return element("text", html_text(text), all);
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  return "<line " + quoted("x1", fixed(x1, 1)) + " " + quoted("y1", fixed(y1, 1)) + " " +
         quoted("x2", fixed(x2, 1)) + " " + quoted("y2", fixed(y2, 1)) + " " + std::string(attributes) +
         "/>\n";
}

double svg_text_width(std::string_view text, double font_px) {
  // Bytes that only continue a character take no room of their own.
  const auto characters =
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return 0.58 * font_px * static_cast<double>(characters);
}

std::string style_colour(int style) {
  return kColours[of_eight(style)];
}

std::string style_stroke(int style, bool strong) {
  std::string text = quoted("stroke", kColours[of_eight(style)]) + " " +
                     quoted("stroke-width", strong ? "2.6" : "1.4") + " stroke-linejoin=\"round\"";
  const std::string dashes = kDashes[dashes_of(style)];
  if (!dashes.empty()) text += " " + quoted("stroke-dasharray", dashes);
  return text;
}

std::string style_marker(int style, double x, double y, bool strong, std::string_view tooltip) {
  const std::size_t shape = of_eight(style);
  const bool filled = shape < 6 && std::max(0, style) / 8 % 2 == 0;
  const std::string attributes = quoted("d", kShapes[shape]) + " " +
                                 quoted("transform", "translate(" + fixed(x, 1) + " " + fixed(y, 1) + ")" +
                                                         (strong ? " scale(1.2)" : "")) +
                                 " " + quoted("stroke", kColours[shape]) + " " +
                                 quoted("fill", filled      ? kColours[shape]
                                                : shape < 6 ? "#fff"
                                                            : "none") +
                                 " stroke-width=\"1.4\"";
  return element("path", tooltip.empty() ? "" : element("title", html_text(tooltip)), attributes);
}

}  // namespace tessera::bench
