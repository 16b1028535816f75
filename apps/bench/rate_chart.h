// Rate-distortion charts of a benchmark's results: a metric over kbps, one curve per codec.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/result.h"
#include "apps/bench/statistics.h"
#include "apps/bench/summary.h"
#include "apps/bench/svg_chart.h"
#include "core/result.h"

namespace tessera::bench {

struct RateChartOptions {
  std::string title = {};  ///< empty: the metric and its unit
  std::string set = {};    ///< empty: all recordings
  /// Codecs whose names begin so are drawn heavier; empty: none.
  std::string highlight = "tessera";
  bool logarithmic_rate = true;
  double width = 860, height = 480;  ///< without the legend
  BootstrapOptions bootstrap = {};
};

/// A picture that stands alone, as text of an SVG file: with a legend, on white. Says "no data" where there
/// is none. Rows with simulated loss are left out.
std::string rate_distortion_svg(const Results& results, const std::string& metric,
                                const RateChartOptions& options = {});
/// Writes it; the file appears whole or not at all. Error io.
Result<void> write_rate_distortion_svg(const std::string& path, const Results& results,
                                       const std::string& metric, const RateChartOptions& options = {});

/// The curves of a metric over the file's kbps; codecs without a score have a curve without points.
std::vector<ChartCurve> rate_curves(const std::vector<CodecSummary>& codecs, const std::string& metric,
                                    const std::string& highlight);
/// Over the simulated loss in percent.
std::vector<ChartCurve> loss_curves(const std::vector<CodecSummary>& series, const std::string& metric,
                                    const std::string& highlight);

/// "visqol_speech, MOS", and which way is better; of a metric that nobody knows, its name.
ChartOptions metric_chart(const std::string& metric);

}  // namespace tessera::bench
