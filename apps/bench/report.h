// The page about a benchmark: one HTML file with charts, tables, comparisons and examples to listen to. It
// holds all that it shows, sound and pictures too, and needs neither a network nor a script.
// docs/benchmark-report.md says how to read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/result.h"
#include "apps/bench/statistics.h"
#include "core/result.h"

namespace tessera::bench {

/// A codec or a metric that was asked for and could not take part.
struct LeftOut {
  std::string what = {}, reason = {};
};

struct ReportOptions {
  std::string title = "Rate and quality of codecs";
  /// The codec against which all are compared; empty: the first of the results.
  std::string anchor = {};
  /// Codecs whose names begin so are drawn heavier; empty: none.
  std::string highlight = "tessera";
  bool logarithmic_rate = true;
  std::string folder = ".";  ///< of the results: where paths of examples begin
  std::vector<LeftOut> left_out = {};
  std::int64_t most_example_bytes = 16 << 20;  ///< larger files are not embedded, and named among the errors
  BootstrapOptions bootstrap = {};
};

/// Examples that cannot be read are named among the errors of the page. Throws UsageError as mean_interval
/// does.
std::string report_html(const Results& results, const ReportOptions& options = {});
/// Writes the page; the file appears whole or not at all. Error io.
Result<void> write_report(const std::string& path, const Results& results, const ReportOptions& options = {});

}  // namespace tessera::bench
