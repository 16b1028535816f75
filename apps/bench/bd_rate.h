// The Bjontegaard delta rate (VCEG-M33, 2001): how many percent more or fewer bytes a codec takes than
// another for the same score, on average over the scores that both reach. log10 of the rate is interpolated
// over the score by monotone cubics (Fritsch and Butland 1984) instead of one polynomial, which swings
// between points that lie unevenly. Leaves out extrapolation: where two curves share no score there is no
// number.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/bench/statistics.h"
#include "metrics/metric.h"

namespace tessera::bench {

/// One operating point on a curve.
struct RatePoint {
  double kbps = 0;
  double score = 0;
};

/// Below this many points there is no curve.
constexpr std::size_t kLeastBdPoints = 3;

struct BdRate {
  std::optional<double> percent = {};         ///< below 0: the tested codec takes fewer bytes
  std::optional<double> low = {}, high = {};  ///< the bootstrap's interval, where asked for and defined
  std::string reason = {};                    ///< why there is no number, or no interval
  double from_score = 0, to_score = 0;        ///< where both curves are, from < to
  std::size_t dropped = 0;  ///< points of either curve left out: another costs no more and scores no less
};

/// Points in any order. Points that are dominated by another of their curve are left out (the rate would not
/// be a function of the score).
BdRate bd_rate(std::span<const RatePoint> anchor, std::span<const RatePoint> tested, metrics::Better better);

/// An operating point over recordings.
struct PointSamples {
  std::vector<double> bytes = {}, seconds = {}, scores = {};  ///< by recording, all in the same order

  /// All bytes over all seconds, and the plain mean of scores, of the recordings `drawn` (indices).
  RatePoint at(std::span<const std::size_t> drawn) const;
};

/// With an interval: all points of both codecs are made anew from the same drawn recordings. Resamples whose
/// curves give no number are passed over; if that is more than a twentieth, there is no interval. Throws
/// UsageError unless all points have the same recordings, at least one.
BdRate bd_rate(std::span<const PointSamples> anchor, std::span<const PointSamples> tested,
               metrics::Better better, const BootstrapOptions& options = {});

/// Monotone cubic through points of increasing x; between two points a line.
class Pchip {
 public:
  /// Throws UsageError for fewer than two points or x that does not increase.
  Pchip(std::vector<double> x, std::vector<double> y);
  double operator()(double x) const;
  /// Over [from, to] inside the points; exact.
  double integral(double from, double to) const;

 private:
  std::size_t piece_of(double x) const;
  double integral_from_start(std::size_t piece, double x) const;

  std::vector<double> x_, y_, slope_;
};

}  // namespace tessera::bench
