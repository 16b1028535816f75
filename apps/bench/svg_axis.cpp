#include "apps/bench/svg_axis.h"

#include <algorithm>
#include <cmath>

#include "core/exact_math.h"

namespace tessera::bench {
namespace {

constexpr double kMost = 1e12, kLeast = 1e-12;
constexpr double kRoom = 0.05;  // of the axis, beyond the data at each end

/// The largest power of ten that is not above `value` (1e-13 to 1e13).
double power_of_ten_below(double value) {
  double power = 1;
  while (power * 10 <= value) power *= 10;
  while (power > value) power /= 10;
  return power;
}

/// Multiples of 1, 2 or 5 times a power of ten: three to seven of them.
std::vector<double> even_ticks(double low, double high) {
  const double raw = (high - low) / 7;
  double step = power_of_ten_below(raw);
  if (raw > 5 * step) {
    step *= 10;
  } else if (raw > 2 * step) {
    step *= 5;
  } else if (raw > step) {
    step *= 2;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step);
  for (int i = 0; i < 12 && (first + i) * step <= high; ++i)
    ticks.push_back((first + i) * step + 0.0);  // no -0
  return ticks;
}

/// 1, 2 and 5 in every decade, or the decades alone when there are many.
std::vector<double> decade_ticks(double low, double high) {
  std::vector<double> ticks;
  const bool many = high / low > 2e4;
  for (double decade = power_of_ten_below(low); decade <= high; decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = decade * digit;
      if (tick >= low && tick <= high && (digit == 1 || !many)) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

bool plottable(double value, bool logarithmic) {
  return std::abs(value) <= kMost && (!logarithmic || value >= kLeast);
}

SvgAxis SvgAxis::around(double low, double high, double begin, double end, bool logarithmic) {
  SvgAxis axis;
  axis.begin = begin;
  axis.end = end;
  axis.logarithmic = logarithmic;
  if (logarithmic) {
    // As much room as on an even axis, in factors; values that are all about the same lie in the middle.
    const double factor = high / low < 1.05 ? 1.5 : exact_pow(high / low, kRoom);
    axis.low = low / factor;
    axis.high = high * factor;
    axis.ticks = decade_ticks(axis.low, axis.high);
    if (axis.ticks.size() < 3) axis.ticks = even_ticks(axis.low, axis.high);
  } else {
    const double least = std::max(1e-6, 1e-3 * std::max(std::abs(low), std::abs(high)));
    const double room = high - low < least ? least : (high - low) * kRoom;
    axis.low = low - room;
    axis.high = high + room;
    axis.ticks = even_ticks(axis.low, axis.high);
  }
  return axis;
}

double SvgAxis::operator()(double value) const {
  const auto scaled = [&](double v) { return logarithmic ? exact_log(v) : v; };
  return begin + (scaled(value) - scaled(low)) / (scaled(high) - scaled(low)) * (end - begin);
}

}  // namespace tessera::bench
