#include "apps/bench/bd_rate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/random.h"

namespace tessera::bench {
namespace {

// The slope at the first point: that of the parabola through the first three, kept monotone.
double end_slope(double h0, double h1, double d0, double d1) {
  const double slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
  if (slope * d0 <= 0) return 0;
  if (d0 * d1 < 0 && std::abs(slope) > 3 * std::abs(d0)) return 3 * d0;
  return slope;
}

// Higher is better from here on; in increasing order of both rate and score.
std::vector<RatePoint> useful_points(std::span<const RatePoint> points, metrics::Better better) {
  std::vector<RatePoint> sorted(points.begin(), points.end());
  if (better == metrics::Better::lower) {
    for (RatePoint& point : sorted) point.score = -point.score;
  }
  std::sort(sorted.begin(), sorted.end(), [](const RatePoint& a, const RatePoint& b) {
    return a.kbps != b.kbps ? a.kbps < b.kbps : a.score > b.score;
  });
  std::vector<RatePoint> kept;
  for (const RatePoint& point : sorted) {
    if (kept.empty() || point.score > kept.back().score) kept.push_back(point);
  }
  return kept;
}

Pchip curve(const std::vector<RatePoint>& points) {
  std::vector<double> scores, log_rates;
  for (const RatePoint& point : points) {
    scores.push_back(point.score);
    log_rates.push_back(exact_log(point.kbps));
  }
  return Pchip(std::move(scores), std::move(log_rates));
}

std::string fixed3(double value) {
  const std::string text = std::to_string(value);
  return text.substr(0, text.size() - 3);
}

}  // namespace

Pchip::Pchip(std::vector<double> x, std::vector<double> y)
    : x_(std::move(x)), y_(std::move(y)), slope_(x_.size()) {
  const std::size_t n = x_.size();
  if (n < 2 || y_.size() != n) fail("pchip", "two points or more", std::to_string(n));
  std::vector<double> h(n - 1), d(n - 1);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    h[i] = x_[i + 1] - x_[i];
    if (!(h[i] > 0)) fail("pchip", "x that increases", std::to_string(x_[i + 1]));
    d[i] = (y_[i + 1] - y_[i]) / h[i];
  }
  if (n == 2) {
    slope_[0] = slope_[1] = d[0];
    return;
  }
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (d[i - 1] * d[i] <= 0) continue;  // a turn: level
    const double before = 2 * h[i] + h[i - 1], after = h[i] + 2 * h[i - 1];
    slope_[i] = (before + after) / (before / d[i - 1] + after / d[i]);
  }
  slope_[0] = end_slope(h[0], h[1], d[0], d[1]);
  slope_[n - 1] = end_slope(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
}

std::size_t Pchip::piece_of(double x) const {
  const auto after = std::upper_bound(x_.begin() + 1, x_.end() - 1, x);
  return static_cast<std::size_t>(after - x_.begin()) - 1;
}

double Pchip::operator()(double x) const {
  const std::size_t i = piece_of(x);
  const double h = x_[i + 1] - x_[i], t = (x - x_[i]) / h, u = 1 - t;
  return u * u * (1 + 2 * t) * y_[i] + u * u * t * h * slope_[i] + t * t * (3 - 2 * t) * y_[i + 1] -
         t * t * u * h * slope_[i + 1];
}

double Pchip::integral_from_start(std::size_t i, double x) const {
  const double h = x_[i + 1] - x_[i], t = (x - x_[i]) / h, t2 = t * t, t3 = t2 * t, t4 = t2 * t2;
  return h * (y_[i] * (t4 / 2 - t3 + t) + y_[i + 1] * (t3 - t4 / 2) +
              h * slope_[i] * (t4 / 4 - 2 * t3 / 3 + t2 / 2) + h * slope_[i + 1] * (t4 / 4 - t3 / 3));
}

double Pchip::integral(double from, double to) const {
  double sum = 0;
  const std::size_t last = piece_of(to);
  for (std::size_t i = piece_of(from); i <= last; ++i) {
    const double a = std::max(from, x_[i]), b = i == last ? to : x_[i + 1];
    sum += integral_from_start(i, b) - integral_from_start(i, a);
  }
  return sum;
}

BdRate bd_rate(std::span<const RatePoint> anchor, std::span<const RatePoint> tested, metrics::Better better) {
  BdRate result;
  const std::span<const RatePoint> given[2] = {anchor, tested};
  std::vector<RatePoint> kept[2];
  for (int i = 0; i < 2; ++i) {
    for (const RatePoint& point : given[i]) {
      if (point.kbps > 0 && std::isfinite(point.kbps) && std::isfinite(point.score)) continue;
      result.reason = "a point without a rate or a score";
      return result;
    }
    kept[i] = useful_points(given[i], better);
    result.dropped += given[i].size() - kept[i].size();
  }
  for (int i = 0; i < 2; ++i) {
    if (kept[i].size() >= kLeastBdPoints) continue;
    result.reason = std::string(i == 0 ? "the anchor" : "the tested codec") + " has " +
                    std::to_string(kept[i].size()) + " points whose score rises with the rate, expected " +
                    std::to_string(kLeastBdPoints) + " or more";
    return result;
  }
  const double from = std::max(kept[0].front().score, kept[1].front().score);
  const double to = std::min(kept[0].back().score, kept[1].back().score);
  if (!(from < to)) {
    const double sign = better == metrics::Better::lower ? -1 : 1;
    const auto range = [&](const std::vector<RatePoint>& points) {
      return fixed3(sign * points.front().score) + " to " + fixed3(sign * points.back().score);
    };
    result.reason = "no score that both reach: " + range(kept[0]) + " and " + range(kept[1]);
    return result;
  }
  const double mean_log =
      (curve(kept[1]).integral(from, to) - curve(kept[0]).integral(from, to)) / (to - from);
  result.percent = (exact_exp(mean_log) - 1) * 100;
  result.from_score = better == metrics::Better::lower ? -to : from;
  result.to_score = better == metrics::Better::lower ? -from : to;
  return result;
}

RatePoint PointSamples::at(std::span<const std::size_t> drawn) const {
  double all_bytes = 0, all_seconds = 0, all_scores = 0;
  for (const std::size_t i : drawn) {
    all_bytes += bytes[i];
    all_seconds += seconds[i];
    all_scores += scores[i];
  }
  return {all_bytes * 8 / all_seconds / 1000, all_scores / static_cast<double>(drawn.size())};
}

BdRate bd_rate(std::span<const PointSamples> anchor, std::span<const PointSamples> tested,
               metrics::Better better, const BootstrapOptions& options) {
  const std::span<const PointSamples> codecs[2] = {anchor, tested};
  std::size_t count = 0;
  for (const auto& codec : codecs) {
    for (const PointSamples& point : codec) {
      if (count == 0) count = point.scores.size();
      if (count > 0 && point.scores.size() == count && point.bytes.size() == count &&
          point.seconds.size() == count) {
        continue;
      }
      fail("bd_rate", "the same recordings at every point", std::to_string(point.scores.size()));
    }
  }
  std::vector<std::size_t> drawn(count);
  std::iota(drawn.begin(), drawn.end(), std::size_t{0});
  const auto evaluate = [&] {
    std::vector<RatePoint> curves[2];
    for (int i = 0; i < 2; ++i) {
      for (const PointSamples& point : codecs[i]) curves[i].push_back(point.at(drawn));
    }
    return bd_rate(curves[0], curves[1], better);
  };
  BdRate result = evaluate();
  if (!result.percent) return result;
  if (count < 2) {
    result.reason = "no interval from one recording";
    return result;
  }
  Random random(options.seed);
  std::vector<double> values;
  for (int resample = 0; resample < options.resamples; ++resample) {
    for (std::size_t& index : drawn) {
      index = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(count)));
    }
    if (const BdRate drawn_rate = evaluate(); drawn_rate.percent) values.push_back(*drawn_rate.percent);
  }
  const auto resamples = static_cast<std::size_t>(options.resamples);
  if (values.empty() || values.size() + resamples / 20 < resamples) {
    result.reason = "no interval: only " + std::to_string(values.size()) + " of " +
                    std::to_string(resamples) + " resamples give a number";
    return result;
  }
  std::sort(values.begin(), values.end());
  result.low = quantile(values, (1 - options.confidence) / 2);
  result.high = quantile(values, (1 + options.confidence) / 2);
  return result;
}

}  // namespace tessera::bench
