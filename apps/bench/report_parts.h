// The sections of a benchmark's page, each as HTML; empty where there is nothing to show.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/report.h"
#include "apps/bench/summary.h"

namespace tessera::bench {

/// What all sections look at.
struct ReportData {
  const Results& results;
  const ReportOptions& options;
  std::vector<Scope> scopes = {};       ///< all recordings first
  std::vector<CodecSummary> loss = {};  ///< curves over simulated loss
};

/// "Heading", open or closed, without a script.
std::string folding(const std::string& heading, const std::string& content, bool open);
/// The same section of every scope: of all recordings open, of each set closed.
template <class Section>
std::string of_scopes(const ReportData& data, const Section& section) {
  std::string text;
  for (std::size_t i = 0; i < data.scopes.size(); ++i) {
    const std::string content = section(data.scopes[i]);
    if (content.empty()) continue;
    text += data.scopes.size() == 1 ? content : folding(data.scopes[i].name, content, i == 0);
  }
  return text;
}

// What was measured, when, where and how.
std::string facts_section(const ReportData& data);
// One chart per metric.
std::string charts_section(const ReportData& data);
std::string loss_section(const ReportData& data);
// Every codec and point, and what they cost.
std::string results_section(const ReportData& data);
std::string costs_section(const ReportData& data);
// Rates at equal score, and scores at about equal rates.
std::string bd_rate_section(const ReportData& data);
std::string paired_section(const ReportData& data);
// Examples; reasons why some are not there are added to `left_out`.
std::string examples_section(const ReportData& data, std::vector<LeftOut>& left_out);
// What the metrics tell, what went wrong, how to do the same.
std::string metrics_section(const ReportData& data);
std::string errors_section(const ReportData& data, const std::vector<LeftOut>& left_out);
std::string recipes_section(const ReportData& data);

/// "1.23 ± 0.04"; without an interval "1.23"; "-" for NaN.
std::string with_half_interval(const Interval& interval, int digits, bool sign = false);
/// "1.2 to 1.3, 25 recordings"
std::string interval_text(const Interval& interval);
/// A number, or "-" for one that is none.
std::string number_or_dash(double value, int digits);
/// Decimals that suit values of this size: about four digits in all.
int digits_for(double largest);

}  // namespace tessera::bench
