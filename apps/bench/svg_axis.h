// One axis of a chart: which values it shows, where they lie on the page and which of them get a mark.
#pragma once

#include <vector>

namespace tessera::bench {

struct SvgAxis {
  double low = 0, high = 1;   ///< values at the ends
  double begin = 0, end = 1;  ///< places of the ends
  bool logarithmic = false;
  std::vector<double> ticks = {};  ///< round values within the ends

  /// Around values from `low` to `high` with some room at both ends, also when they are equal. All within
  /// 1e12 of 0, and above 0 when logarithmic.
  static SvgAxis around(double low, double high, double begin, double end, bool logarithmic);

  double operator()(double value) const;
};

/// Whether a chart can show it.
bool plottable(double value, bool logarithmic = false);

}  // namespace tessera::bench
