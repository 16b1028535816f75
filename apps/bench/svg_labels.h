// Finds places for the names of curves at their ends: where a name covers no other name and as little as can
// be of the curves. Greedy, in the order given; eight places around either end of a curve are tried.
#pragma once

#include <span>
#include <vector>

#include "apps/bench/svg_marks.h"

namespace tessera::bench {

struct SvgPlace {
  double x = 0, y = 0;
};

struct SvgLabel {
  double x = 0, y = 0;  ///< of the text's base line
  TextAnchor anchor = TextAnchor::start;
};

struct SvgBox {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// One label per curve, `widths` px wide. `curves` are their points on the page, none empty; `obstacles` are
/// other places that are better not covered. Labels stay within `page` where they can.
std::vector<SvgLabel> place_labels(std::span<const double> widths,
                                   std::span<const std::vector<SvgPlace>> curves,
                                   std::vector<SvgPlace> obstacles, double font_px, const SvgBox& page);

}  // namespace tessera::bench
