// The words of the page: what was measured and how, what the metrics tell, what went wrong, how to repeat it.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "apps/bench/html.h"
#include "apps/bench/report_parts.h"
#include "metrics/metric.h"
#include "train/text.h"

namespace tessera::bench {
namespace {

constexpr std::size_t kMostErrors = 100;  // in the table

std::string fact(const std::string& name, const std::string& value) {
  return table_row(element("th", html_text(name), "scope=\"row\"") +
                   element("td", html_text(value), "class=\"pre\""));
}

/// "a, b, c"
template <class Names>
std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// How many and how long the recordings are.
std::string sound_text(const Results& results) {
  std::map<RecordingKey, double> seconds;
  std::set<std::string> sets;
  for (const ResultRow& row : results.rows) {
    sets.insert(row.set);
    double& longest = seconds[{row.set, row.recording}];
    if (row.seconds > longest) longest = row.seconds;
  }
  double all = 0;
  for (const auto& [key, value] : seconds) all += value;
  return counted(seconds.size(), "recording") + ", " + train::clock_time(all) + ", of " +
         counted(sets.size(), "set") + ": " + listed(sets);
}

/// Codec, point and what went wrong.
using Failure = std::tuple<std::string, std::string, std::string>;

/// Why a row is of no use; empty for a good one.
std::string trouble_of(const ResultRow& row) {
  if (!row.error.empty()) return row.error;
  if (!(row.seconds > 0)) return "expected a length above 0 s, got " + train::rounded(row.seconds);
  if (row.file_bytes <= 0) return "expected a file of 1 byte or more, got " + std::to_string(row.file_bytes);
  return "";
}

/// With its set, once.
std::string full_name(const ResultRow& row) {
  const std::string set = row.set + "/";
  return row.recording.starts_with(set) ? row.recording : set + row.recording;
}

std::string failures_table(const Results& results) {
  std::map<Failure, std::vector<std::string>> failures;
  for (const ResultRow& row : results.rows) {
    const std::string trouble = trouble_of(row);
    if (!trouble.empty()) failures[{row.codec, row.point, trouble}].push_back(full_name(row));
  }
  std::string rows;
  std::size_t shown = 0;
  for (const auto& [failure, recordings] : failures) {
    const auto& [codec, point, error] = failure;
    if (++shown > kMostErrors) break;
    rows += table_row(element("th", html_text(codec + ", " + point), "scope=\"row\"") +
                      element("td", html_text(error)) +
                      number_cell(std::to_string(recordings.size()), listed(recordings)) +
                      element("td", html_text(recordings.front())));
  }
  if (rows.empty()) return "";
  if (shown > kMostErrors) {
    rows += table_row(
        element("td", "and " + counted(failures.size() - kMostErrors, "more error"), "colspan=\"4\""));
  }
  return element("h3", "Recordings with errors") +
         element("table", element("thead", table_row("<th>codec</th><th>error</th><th>recordings</th><th>the "
                                                     "first</th>")) +
                              element("tbody", rows));
}

/// Scores that rows without an error lack.
std::string lacking_table(const Results& results) {
  std::string rows;
  for (const std::string& metric : results.metrics) {
    std::map<std::pair<std::string, std::string>, std::size_t> lacking;
    for (const ResultRow& row : results.rows) {
      if (trouble_of(row).empty() && !score_of(row, metric)) ++lacking[{row.codec, row.point}];
    }
    for (const auto& [series, count] : lacking) {
      rows += table_row(element("th", html_text(metric), "scope=\"row\"") +
                        element("td", html_text(series.first + ", " + series.second)) +
                        number_cell(std::to_string(count)));
    }
  }
  if (rows.empty()) return "";
  return element("h3", "Scores that are missing") +
         element("table", element("thead", table_row("<th>metric</th><th>codec</th><th>recordings</th>")) +
                              element("tbody", rows));
}

}  // namespace

std::string folding(const std::string& heading, const std::string& content, bool open) {
  return element("details", element("summary", html_text(heading)) + content, open ? "open" : "");
}

std::string facts_section(const ReportData& data) {
  std::vector<std::string> codecs;
  for (const CodecSummary& codec : data.scopes.front().codecs) {
    codecs.push_back(codec.codec + " (" + counted(codec.points.size(), "point") + ")");
  }
  std::string rows = fact("recordings", sound_text(data.results)) + fact("codecs", listed(codecs)) +
                     fact("metrics", listed(data.results.metrics));
  const BootstrapOptions& bootstrap = data.options.bootstrap;
  rows +=
      fact("intervals", train::rounded(bootstrap.confidence * 100) + " % by the bootstrap over recordings (" +
                            std::to_string(bootstrap.resamples) + " resamples, seed " +
                            std::to_string(bootstrap.seed) + ")");
  for (const auto& [name, value] : data.results.facts) rows += fact(name, value);
  return element("table", element("tbody", rows), "class=\"facts\"");
}

std::string metrics_section(const ReportData& data) {
  std::string rows;
  for (const std::string& metric : data.results.metrics) {
    const metrics::MetricInfo* info = metrics::find_metric(metric);
    const char* better = !info ? "-" : info->better == metrics::Better::higher ? "higher" : "lower";
    rows +=
        table_row(element("th", html_text(metric), "scope=\"row\"") +
                  element("td", info ? html_text(info->unit) : "-") + element("td", better) +
                  element("td", info ? html_text(info->tells) : "A metric that this program does not know."));
  }
  if (rows.empty()) return "";
  return element(
             "p",
             "No number here replaces listeners. Read at least one metric that compares with the original "
             "and one that does not, and listen to the examples.") +
         element("table", element("thead", table_row("<th>metric</th><th>unit</th><th>better</th><th>what it "
                                                     "tells, and what not</th>")) +
                              element("tbody", rows));
}

std::string errors_section(const ReportData& data, const std::vector<LeftOut>& left_out) {
  std::string rows;
  for (const LeftOut& one : left_out) {
    rows +=
        table_row(element("th", html_text(one.what), "scope=\"row\"") + element("td", html_text(one.reason)));
  }
  std::string text;
  if (!rows.empty()) {
    text =
        element("h3", "Left out") +
        element("table", element("thead", table_row("<th>what</th><th>why</th>")) + element("tbody", rows));
  }
  text += failures_table(data.results) + lacking_table(data.results);
  return text.empty() ? element("p", "None: every codec took part, every recording has every score.") : text;
}

std::string recipes_section(const ReportData& data) {
  std::string rows;
  for (const auto& [name, recipe] : data.results.recipes) rows += fact(name, recipe);
  return rows.empty() ? "" : element("table", element("tbody", rows), "class=\"facts\"");
}

}  // namespace tessera::bench
