#include "apps/bench/svg_chart.h"

#include <algorithm>
#include <cmath>

#include "apps/bench/html.h"
#include "apps/bench/svg_axis.h"
#include "apps/bench/svg_labels.h"
#include "apps/bench/svg_marks.h"
#include "train/text.h"

namespace tessera::bench {
namespace {

using train::fixed;
using train::rounded;

constexpr double kLeft = 52, kRight = 74, kTop = 34, kBottom = 40;  // margins; names stand to the right
constexpr double kFont = 12;
constexpr double kWide = 6;  // px: an interval of rates narrower than this is hidden by the marker
constexpr double kLegendRow = 20;

bool known(const ChartRange& range, bool logarithmic) {
  return plottable(range.low, logarithmic) && plottable(range.high, logarithmic);
}

/// The part of the curves that has a place on the page, curves without points left out.
std::vector<ChartCurve> plottable_part(std::span<const ChartCurve> curves, bool logarithmic_x) {
  std::vector<ChartCurve> result;
  for (const ChartCurve& curve : curves) {
    ChartCurve part = curve;
    std::erase_if(part.points, [&](const ChartPoint& point) {
      return !plottable(point.x, logarithmic_x) || !plottable(point.y);
    });
    if (!part.points.empty()) result.push_back(std::move(part));
  }
  return result;
}

struct Axes {
  SvgAxis x, y;
};

Axes axes_of(std::span<const ChartCurve> curves, const ChartOptions& options) {
  double x_low = 1e300, x_high = -1e300, y_low = 1e300, y_high = -1e300;
  const auto widen = [](double value, double& low, double& high) {
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const ChartCurve& curve : curves) {
    for (const ChartPoint& point : curve.points) {
      widen(point.x, x_low, x_high);
      widen(point.y, y_low, y_high);
      if (!known(point.y_range, false)) continue;
      widen(point.y_range.low, y_low, y_high);
      widen(point.y_range.high, y_low, y_high);
    }
  }
  Axes axes;
  axes.x = SvgAxis::around(x_low, x_high, kLeft, options.width - kRight, options.logarithmic_x);
  if (!options.logarithmic_x && x_low >= 0) {  // an even axis of rates begins at none
    axes.x = SvgAxis::around(0, x_high, kLeft, options.width - kRight, false);
    axes.x.low = 0;
  }
  axes.y = SvgAxis::around(y_low, y_high, options.height - kBottom, kTop, false);
  return axes;
}

std::string grid(const Axes& axes, const ChartOptions& options) {
  const std::string faint = "stroke=\"#ddd\"", dark = "stroke=\"#000\"";
  const double bottom = options.height - kBottom, right = options.width - kRight;
  std::string text;
  for (const double tick : axes.y.ticks) {
    const double y = axes.y(tick);
    text += svg_line(kLeft, y, right, y, faint) + svg_text(kLeft - 6, y + 4, TextAnchor::end, rounded(tick));
  }
  for (const double tick : axes.x.ticks) {
    const double x = axes.x(tick);
    text += svg_line(x, kTop, x, bottom, faint) + svg_line(x, bottom, x, bottom + 4, dark) +
            svg_text(x, bottom + 17, TextAnchor::middle, rounded(tick));
  }
  return text + svg_line(kLeft, bottom, right, bottom, dark) +
         svg_text((kLeft + right) / 2, options.height - 6, TextAnchor::middle, options.x_title);
}

/// "I" along one axis.
std::string bar(double x1, double y1, double x2, double y2, const std::string& stroke) {
  const double dx = y1 == y2 ? 0 : 3, dy = y1 == y2 ? 3 : 0;
  return svg_line(x1, y1, x2, y2, stroke) + svg_line(x1 - dx, y1 - dy, x1 + dx, y1 + dy, stroke) +
         svg_line(x2 - dx, y2 - dy, x2 + dx, y2 + dy, stroke);
}

std::string intervals(const ChartCurve& curve, const Axes& axes) {
  const std::string stroke = "stroke=\"" + style_colour(curve.style) + "\" stroke-width=\"1\"";
  std::string text;
  for (const ChartPoint& point : curve.points) {
    const double x = axes.x(point.x), y = axes.y(point.y);
    if (known(point.y_range, false)) {
      text += bar(x, axes.y(point.y_range.low), x, axes.y(point.y_range.high), stroke);
    }
    if (!known(point.x_range, axes.x.logarithmic)) continue;
    const double left = std::max(axes.x.begin, axes.x(point.x_range.low));
    const double right = std::min(axes.x.end, axes.x(point.x_range.high));
    if (right - left > kWide) text += bar(left, y, right, y, stroke);
  }
  return text;
}

std::string tooltip(const ChartCurve& curve, const ChartPoint& point) {
  std::string text = curve.label + (point.name.empty() ? "" : ", " + point.name) + ": " + rounded(point.y);
  if (known(point.y_range, false)) {
    text += " (" + rounded(point.y_range.low) + " to " + rounded(point.y_range.high) + ")";
  }
  return text + " at " + rounded(point.x);
}

std::string line(const ChartCurve& curve, const Axes& axes) {
  if (curve.points.size() < 2) return "";
  std::string text = "<polyline fill=\"none\" " + style_stroke(curve.style, curve.strong) + " points=\"";
  for (const ChartPoint& point : curve.points) {
    text += fixed(axes.x(point.x), 1) + "," + fixed(axes.y(point.y), 1) + " ";
  }
  return text + "\"/>\n";
}

std::string markers(const ChartCurve& curve, const Axes& axes) {
  std::string text;
  for (const ChartPoint& point : curve.points) {
    text += style_marker(curve.style, axes.x(point.x), axes.y(point.y), curve.strong, tooltip(curve, point));
  }
  return text;
}

/// Places along the intervals, which names should not cover.
std::vector<SvgPlace> interval_places(std::span<const ChartCurve> curves, const Axes& axes) {
  std::vector<SvgPlace> places;
  for (const ChartCurve& curve : curves) {
    for (const ChartPoint& point : curve.points) {
      if (!known(point.y_range, false)) continue;
      const double x = axes.x(point.x), top = axes.y(point.y_range.high);
      for (double y = axes.y(point.y_range.low); y >= top; y -= 6) places.push_back({x, y});
    }
  }
  return places;
}

std::string names(std::span<const ChartCurve> curves, const Axes& axes, const ChartOptions& options) {
  std::vector<double> widths;
  std::vector<std::vector<SvgPlace>> places;
  for (const ChartCurve& curve : curves) {
    widths.push_back(svg_text_width(curve.label, kFont) * (curve.strong ? 1.15 : 1));
    places.emplace_back();
    for (const ChartPoint& point : curve.points) places.back().push_back({axes.x(point.x), axes.y(point.y)});
  }
  const SvgBox page{kLeft + 2, kTop + 2, options.width - 2, options.height - kBottom - 2};
  const auto labels = place_labels(widths, places, interval_places(curves, axes), kFont, page);
  std::string text;
  for (std::size_t i = 0; i < labels.size(); ++i) {  // with a white rim, for lines that pass beneath
    text += svg_text(labels[i].x, labels[i].y, labels[i].anchor, curves[i].label,
                     "paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\" fill=\"" +
                         style_colour(curves[i].style) + "\"" +
                         (curves[i].strong ? " font-weight=\"bold\"" : ""));
  }
  return text;
}

/// The title; an arrow and words say which way is better.
std::string head(const ChartOptions& options) {
  std::string text =
      svg_text(kLeft, 18, TextAnchor::start, options.title, "font-size=\"13\" font-weight=\"bold\"");
  if (options.better == Toward::unknown) return text;
  const bool up = options.better == Toward::up;
  const double x = options.width - kRight - 4;
  const std::string path = up ? "M0 0V-13M-4 -8L0 -13L4 -8" : "M0 -13V0M-4 -5L0 0L4 -5";
  return text + svg_text(x - 10, 18, TextAnchor::end, up ? "higher is better" : "lower is better") +
         "<path d=\"" + path + "\" transform=\"translate(" + fixed(x, 1) +
         " 20)\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.6\"/>\n";
}

struct Legend {
  std::string content = {};
  double height = 0;
};

Legend legend_of(std::span<const ChartCurve> curves, double width, double top) {
  Legend legend;
  double x = 8;
  double y = top + kLegendRow / 2;
  for (const ChartCurve& curve : curves) {
    const double room = 44 + svg_text_width(curve.label, kFont) + 14;
    if (x > 8 && x + room > width) {
      x = 8;
      y += kLegendRow;
    }
    legend.content += svg_line(x, y, x + 36, y, style_stroke(curve.style, curve.strong)) +
                      style_marker(curve.style, x + 18, y, curve.strong) +
                      svg_text(x + 42, y + 4, TextAnchor::start, curve.label);
    x += room;
  }
  if (!curves.empty()) legend.height = y + kLegendRow / 2 - top + 4;
  return legend;
}

std::string picture(const std::string& title, double width, double height, const std::string& content) {
  const std::string w = fixed(width, 0), h = fixed(height, 0);
  return element("svg",
                 "\n" + element("title", html_text(title)) + "<rect width=\"" + w + "\" height=\"" + h +
                     "\" fill=\"#fff\"/>\n" + content,
                 "xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + w + " " + h + "\" width=\"" + w +
                     "\" height=\"" + h +
                     "\" role=\"img\" font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"" +
                     fixed(kFont, 0) + "\"");
}

}  // namespace

std::string xy_chart(std::span<const ChartCurve> all, const ChartOptions& asked) {
  ChartOptions options = asked;
  options.width = std::clamp(asked.width, 200.0, 1e4);
  options.height = std::clamp(asked.height, 120.0, 1e4);
  const std::vector<ChartCurve> curves = plottable_part(all, options.logarithmic_x);
  if (curves.empty()) {
    return picture(
        options.title, options.width, options.height,
        head(options) + svg_text(options.width / 2, options.height / 2, TextAnchor::middle, "no data"));
  }
  const Axes axes = axes_of(curves, options);
  std::string content = head(options) + grid(axes, options);
  for (const ChartCurve& curve : curves) content += intervals(curve, axes);
  for (const ChartCurve& curve : curves) content += line(curve, axes);
  for (const ChartCurve& curve : curves) content += markers(curve, axes);
  content += names(curves, axes, options);
  Legend legend;
  if (options.legend) legend = legend_of(curves, options.width, options.height);
  return picture(options.title, options.width, options.height + legend.height, content + legend.content);
}

std::string chart_legend(std::span<const ChartCurve> curves, double width) {
  const Legend legend = legend_of(curves, std::max(width, 200.0), 0);
  return picture("legend", std::max(width, 200.0), std::max(legend.height, 1.0), legend.content);
}

}  // namespace tessera::bench
