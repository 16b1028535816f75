#include "apps/bench/svg_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "apps/bench/svg_axis.h"
#include "apps/bench/svg_labels.h"
#include "apps/bench/svg_marks.h"
#include "tests/bench_suite/markup.h"

namespace tessera::bench {
namespace {

using test::count_of;

ChartCurve curve(const std::string& label, const std::vector<std::pair<double, double>>& points,
                 int style = 0) {
  ChartCurve result;
  result.label = label;
  result.style = style;
  for (const auto& [x, y] : points) {
    ChartPoint point;
    point.x = x;
    point.y = y;
    result.points.push_back(point);
  }
  return result;
}

TEST(SvgAxis, TicksAreRoundAndWithin) {
  for (const auto& [low, high] : {std::pair(0.0, 1.0), std::pair(1.2, 4.7), std::pair(-5.0, 25.0),
                                  std::pair(3.999, 4.001), std::pair(0.0, 1e12), std::pair(1e-9, 2e-9)}) {
    const SvgAxis axis = SvgAxis::around(low, high, 10, 110, false);
    EXPECT_GE(axis.ticks.size(), 3u) << low;
    EXPECT_LE(axis.ticks.size(), 9u) << low;
    EXPECT_GE(axis.ticks.front(), axis.low);
    EXPECT_LE(axis.ticks.back(), axis.high);
    EXPECT_LT(axis.low, low);
    EXPECT_GT(axis.high, high);
  }
  EXPECT_EQ(SvgAxis::around(0.9, 40, 0, 1, true).ticks, (std::vector<double>{1, 2, 5, 10, 20}));
  EXPECT_EQ(SvgAxis::around(0.01, 1e6, 0, 1, true).ticks.size(), 9u);  // decades alone
  EXPECT_GE(SvgAxis::around(6.0, 6.1, 0, 1, true).ticks.size(), 3u);   // within one step of 1, 2, 5
  EXPECT_GE(SvgAxis::around(1e-12, 1e-12, 0, 1, true).ticks.size(), 1u);
}

TEST(SvgAxis, EqualValuesLieInTheMiddle) {
  for (const double value : {0.0, 4.5, -1e12, 1e-12}) {
    EXPECT_NEAR(SvgAxis::around(value, value, 0, 100, false)(value), 50, 1e-3) << value;
    if (value > 0) {
      EXPECT_NEAR(SvgAxis::around(value, value, 0, 100, true)(value), 50, 1e-9) << value;
    }
  }
}

// Five hundredths of the axis stay free at either end; the plot is 494 by 306 px from (52, 34).
TEST(XyChart, PutsPointsInTheirPlaces) {
  const std::vector<ChartCurve> curves = {curve("a", {{1, 1}, {10, 2}})};
  ChartOptions options;
  EXPECT_EQ(count_of(xy_chart(curves, options), "points=\"74.5,326.1 523.5,47.9 \""), 1u);
  options.logarithmic_x = false;  // from 0: 1 at a tenth of 10 of 10.5
  EXPECT_EQ(count_of(xy_chart(curves, options), "points=\"99.0,326.1 522.5,47.9 \""), 1u);
}

TEST(XyChart, DrawsIntervals) {
  std::vector<ChartCurve> curves = {curve("a", {{1, 1}, {10, 2}})};
  ChartOptions options;
  options.legend = false;
  const std::size_t before = count_of(xy_chart(curves, options), "<line");
  curves[0].points[0].y_range = {0.9, 1.2};
  curves[0].points[1].x_range = {9.99, 10.01};  // hidden by the marker
  const std::string narrow = xy_chart(curves, options);
  EXPECT_EQ(count_of(narrow, "<line"), before + 3);  // a bar and its two ends
  curves[0].points[1].x_range = {8, 12};
  const std::string wide = xy_chart(curves, options);
  EXPECT_EQ(count_of(wide, "<line"), before + 6);
  EXPECT_NE(wide.find("a: 1 (0.9 to 1.2) at 1</title>"), std::string::npos);
  EXPECT_EQ(test::markup_trouble(wide), "");
}

TEST(XyChart, SaysWhichWayIsBetter) {
  const std::vector<ChartCurve> curves = {curve("a", {{1, 1}, {10, 2}})};
  ChartOptions options;
  EXPECT_EQ(xy_chart(curves, options).find("is better"), std::string::npos);
  options.better = Toward::up;
  EXPECT_NE(xy_chart(curves, options).find("higher is better"), std::string::npos);
  options.better = Toward::down;
  EXPECT_NE(xy_chart(curves, options).find("lower is better"), std::string::npos);
}

TEST(XyChart, LeavesOutWhatHasNoPlace) {
  std::vector<ChartCurve> curves = {
      curve("good", {{1, 1}, {NAN, 2}, {0, 3}, {-1, 3}, {2, INFINITY}, {3, 1e300}, {4, 2}}),
      curve("<gone>", {{5, NAN}})};
  curves[0].points[0].y_range = {NAN, 3};
  ChartOptions options;
  options.title = "a & b";
  const std::string chart = xy_chart(curves, options);
  EXPECT_EQ(count_of(chart, "<path"), 2u + 1u);  // two points, and the marker of the legend
  EXPECT_EQ(chart.find("nan"), std::string::npos);
  EXPECT_EQ(chart.find("inf"), std::string::npos);
  EXPECT_EQ(chart.find("gone"), std::string::npos);
  EXPECT_EQ(count_of(chart, "a &amp; b"), 2u);
}

TEST(XyChart, OnePointIsAMarkerWithoutALine) {
  const std::vector<ChartCurve> curves = {curve("only", {{6, 3.5}})};
  const std::string chart = xy_chart(curves, {});
  EXPECT_EQ(count_of(chart, "<polyline"), 0u);
  EXPECT_EQ(count_of(chart, "only: 3.5 at 6</title>"), 1u);
  EXPECT_EQ(count_of(chart, ">only</text>"), 2u);  // at the point and in the legend
}

TEST(XyChart, NoData) {
  EXPECT_NE(xy_chart({}, {}).find("no data"), std::string::npos);
  EXPECT_EQ(test::markup_trouble(xy_chart({}, {})), "");
  EXPECT_EQ(test::markup_trouble(chart_legend({}, 0)), "");
}

TEST(Styles, TwentyFourDifferInMoreThanColour) {
  std::set<std::string> seen;
  const auto without_colour = [](std::string text) {
    for (std::size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at + 1)) {
      if (text.substr(at, 4) != "#fff") text.erase(at + 1, 6);
    }
    return text;
  };
  for (int style = 0; style < 24; ++style) {
    seen.insert(without_colour(style_stroke(style, false) + style_marker(style, 0, 0, false)));
  }
  EXPECT_EQ(seen.size(), 24u);
}

TEST(Labels, DoNotCoverEachOther) {
  // Six curves that end close to each other.
  std::vector<std::vector<SvgPlace>> curves;
  std::vector<double> widths;
  for (int i = 0; i < 6; ++i) {
    curves.push_back({{60, 300.0 - 8 * i}, {400, 100.0 + 5 * i}});
    widths.push_back(60);
  }
  const auto labels = place_labels(widths, curves, {}, 12, {54, 36, 618, 338});
  ASSERT_EQ(labels.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto left = [&](std::size_t k) {
      return labels[k].x - (labels[k].anchor == TextAnchor::start    ? 0
                            : labels[k].anchor == TextAnchor::middle ? 30
                                                                     : 60);
    };
    EXPECT_GE(left(i), 54);
    EXPECT_LE(left(i) + 60, 618);
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart =
          std::abs(left(i) - left(j)) >= 60 || std::abs(labels[i].y - labels[j].y) >= 1.1 * 12 - 1e-9;
      EXPECT_TRUE(apart) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace tessera::bench
