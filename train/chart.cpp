#include "train/chart.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/exact_math.h"
#include "train/text.h"

namespace tessera::train {
namespace {

constexpr double kWidth = 420, kHeight = 190;
constexpr double kLeft = 52, kRight = 8, kTop = 24, kBottom = 22;  // margins
constexpr std::size_t kMostPoints = 600;                           // of a curve

struct Point {
  double x, y;
};

/// From values to places on the page.
struct Axis {
  double low = 0, high = 1;   // values at the ends
  double begin = 0, end = 1;  // places of the ends
  bool logarithmic = false;

  double scaled(double value) const { return logarithmic ? exact_log(value) : value; }
  double operator()(double value) const {
    return begin + (scaled(value) - scaled(low)) / (scaled(high) - scaled(low)) * (end - begin);
  }
  double middle() const { return logarithmic ? std::sqrt(low) * std::sqrt(high) : 0.5 * low + 0.5 * high; }
};

Axis vertical(std::span<const Point> points) {
  Axis axis;
  axis.begin = kHeight - kBottom;
  axis.end = kTop;
  if (points.empty()) return axis;
  const auto [low, high] = std::ranges::minmax_element(points, {}, &Point::y);
  axis.low = low->y;
  axis.high = high->y;
  axis.logarithmic = axis.low > 0 && axis.high / axis.low >= 20;
  if (axis.high - axis.low <= 1e-9 * std::abs(axis.high)) {  // a flat curve lies in the middle
    const double room = std::max(std::abs(axis.high) * 0.1, 1e-6);
    axis.low -= room;
    axis.high += room;
  }
  return axis;
}

Axis horizontal(std::span<const Point> points) {
  Axis axis;
  axis.begin = kLeft;
  axis.end = kWidth - kRight;
  if (points.empty()) return axis;
  axis.low = points.front().x;
  axis.high = std::max(points.back().x, axis.low + 1);
  return axis;
}

/// Means of runs of equal length, so few that a page of them stays small.
std::vector<Point> thinned(std::span<const Point> points) {
  const std::size_t run = points.size() / kMostPoints + 1;
  std::vector<Point> result;
  for (std::size_t i = 0; i < points.size(); i += run) {
    const std::size_t end = std::min(points.size(), i + run);
    Point mean{points[end - 1].x, 0};
    for (std::size_t j = i; j < end; ++j) mean.y += points[j].y / static_cast<double>(end - i);
    result.push_back(mean);
  }
  return result;
}

/// A running mean over about a thirtieth of the curve.
std::vector<Point> smoothed(std::span<const Point> points) {
  const double rate = 1 / (1 + static_cast<double>(points.size()) / 30);
  std::vector<Point> result;
  double mean = 0, weight = 0;
  for (const Point& point : points) {
    mean += rate * (point.y - mean);
    weight += rate * (1 - weight);  // of what was seen, in a mean that began at 0
    result.push_back({point.x, mean / weight});
  }
  return result;
}

std::string line(std::span<const Point> points, const Axis& x, const Axis& y, const char* style) {
  std::string text = std::string("<polyline fill=\"none\" ") + style + " points=\"";
  for (const Point& point : points) text += fixed(x(point.x), 1) + "," + fixed(y(point.y), 1) + " ";
  return text + "\"/>\n";
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" + anchor + "\">" +
         escape_html(text) + "</text>\n";
}

std::string rule(double y) {
  return "<line x1=\"" + fixed(kLeft, 1) + "\" x2=\"" + fixed(kWidth - kRight, 1) + "\" y1=\"" + fixed(y, 1) +
         "\" y2=\"" + fixed(y, 1) + "\" stroke=\"#ddd\"/>\n";
}

std::string frame(const std::string& title, const std::string& content) {
  return "<svg viewBox=\"0 0 " + fixed(kWidth, 0) + " " + fixed(kHeight, 0) + "\" width=\"" +
         fixed(kWidth, 0) + "\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n<title>" +
         escape_html(title) + "</title>\n" + label(kLeft, 14, "start", title) + content + "</svg>\n";
}

std::string scale(const Axis& y) {
  std::string text;
  for (const double value : {y.low, y.middle(), y.high}) {
    text += rule(y(value)) + label(kLeft - 4, y(value) + 4, "end", rounded(value));
  }
  return text;
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string line_chart(const std::string& title, std::span<const std::int64_t> steps,
                       std::span<const double> values) {
  if (steps.size() != values.size()) {
    fail("line_chart", std::to_string(steps.size()) + " values", std::to_string(values.size()));
  }
  std::vector<Point> measured;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (std::isfinite(values[i])) measured.push_back({static_cast<double>(steps[i]), values[i]});
  }
  if (measured.empty()) return frame(title + ": no values yet", "");
  const std::vector<Point> points = thinned(measured), means = smoothed(points);
  const Axis x = horizontal(points), y = vertical(points);
  const double below = kHeight - kBottom + 14;
  return frame(title + ": " + rounded(means.back().y),
               scale(y) + label(kLeft, below, "start", fixed(x.low, 0)) +
                   label(kWidth - kRight, below, "end", "step " + fixed(x.high, 0)) +
                   line(points, x, y, "stroke=\"#aaa\" stroke-width=\"0.8\"") +
                   line(means, x, y, "stroke=\"#000\" stroke-width=\"1.6\""));
}

std::string bar_chart(const std::string& title, std::span<const double> values, double top) {
  Axis y;
  y.high = top > 0 ? top : 1;
  y.begin = kHeight - kBottom;
  y.end = kTop;
  std::string bars;
  const double room =
      (kWidth - kRight - kLeft) / static_cast<double>(std::max<std::size_t>(1, values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double height = y.begin - y(std::isfinite(values[i]) ? std::clamp(values[i], 0.0, y.high) : 0.0);
    bars += "<rect x=\"" + fixed(kLeft + room * (static_cast<double>(i) + 0.1), 1) + "\" y=\"" +
            fixed(y.begin - height, 1) + "\" width=\"" + fixed(room * 0.8, 1) + "\" height=\"" +
            fixed(height, 1) + "\" fill=\"#444\"><title>" + std::to_string(i) + ": " + rounded(values[i]) +
            "</title></rect>\n";
  }
  return frame(title, scale(y) + bars);
}

}  // namespace tessera::train
