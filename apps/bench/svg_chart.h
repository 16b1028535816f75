// Charts of curves with intervals as SVG: inside a page, or as a file of their own on a white ground. Curves
// tell apart by marker and dashes as well as by colour, so they print, and each bears its name. Left out:
// a second axis, areas, anything that moves.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace tessera::bench {

/// A range around a value; NaN: not known.
struct ChartRange {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

struct ChartPoint {
  double x = 0, y = 0;
  ChartRange x_range = {}, y_range = {};
  std::string name = {};  ///< shown under the pointer, with the numbers
};

struct ChartCurve {
  std::string label = {};
  std::vector<ChartPoint> points = {};  ///< in the order in which they are joined
  int style = 0;                        ///< marker, dashes and colour: 0, 1, ...; 24 that differ
  bool strong = false;                  ///< drawn twice as heavy
};

enum class Toward : unsigned char { unknown, up, down };

struct ChartOptions {
  std::string title = {}, x_title = {};
  Toward better = Toward::unknown;  ///< an arrow says so
  bool logarithmic_x = true;
  bool legend = true;
  double width = 620, height = 380;  ///< of the chart without its legend; at least 200 by 120 are used
};

/// Points whose place is not a number, is above 1e12 or (on a logarithmic axis) not above 0 are left out.
std::string xy_chart(std::span<const ChartCurve> curves, const ChartOptions& options);

/// The legend alone, as a picture.
std::string chart_legend(std::span<const ChartCurve> curves, double width);

}  // namespace tessera::bench
