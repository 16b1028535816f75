// The tables of numbers: every codec and operating point, and what each costs.
#include <algorithm>
#include <cmath>

#include "apps/bench/html.h"
#include "apps/bench/report_parts.h"
#include "metrics/metric.h"
#include "train/text.h"

namespace tessera::bench {
namespace {

using train::fixed;

std::string heading(const std::string& text, const std::string& below = "") {
  return element("th", html_text(text) + (below.empty() ? "" : "<br><small>" + html_text(below) + "</small>"),
                 "scope=\"col\"");
}

/// The metric's name with its unit and the way that is better.
std::string metric_heading(const std::string& metric) {
  const metrics::MetricInfo* info = metrics::find_metric(metric);
  if (!info) return heading(metric);
  const std::string unit(info->unit);
  return heading(metric,
                 unit + (unit.empty() ? "" : ", ") +
                     (info->better == metrics::Better::higher ? "higher is better" : "lower is better"));
}

/// One number of decimals for a column.
int digits_of(const Scope& scope, const std::string& metric) {
  double largest = 0;
  for (const CodecSummary& codec : scope.codecs) {
    for (const PointSummary& point : codec.points) {
      if (const Interval* score = point.score(metric)) largest = std::max(largest, std::abs(score->mean));
    }
  }
  return digits_for(largest);
}

/// The middle one of the recordings' delays, and their range where they differ.
std::string delay_cell(const PointSummary& point) {
  std::vector<std::int64_t> delays;
  for (const auto& [key, row] : point.rows) delays.push_back(row->delay_samples);
  if (delays.empty()) return number_cell("-");
  std::ranges::sort(delays);
  const std::string range = std::to_string(delays.front()) + " to " + std::to_string(delays.back());
  return number_cell(
      std::to_string(delays[delays.size() / 2]) + (delays.front() == delays.back() ? "" : " (" + range + ")"),
      "the recordings' median");
}

std::string score_cell(const PointSummary& point, const std::string& metric, int digits) {
  const Interval* score = point.score(metric);
  if (!score) return number_cell("-", "no recording has this score");
  std::string text = with_half_interval(*score, digits);
  const auto lacking = static_cast<std::int64_t>(point.rows.size()) - score->count;
  if (lacking > 0) text += " (" + std::to_string(lacking) + " missing)";
  return number_cell(text, interval_text(*score));
}

std::string results_table(const ReportData& data, const Scope& scope) {
  const std::vector<std::string>& metrics = data.results.metrics;
  std::string head =
      heading("codec") + heading("point") + heading("kbps", "of the file") + heading("kbps", "payload");
  std::vector<int> digits;
  for (const std::string& metric : metrics) {
    head += metric_heading(metric);
    digits.push_back(digits_of(scope, metric));
  }
  head += heading("recordings", "failed") + heading("delay", "samples");
  std::string rows;
  for (const CodecSummary& codec : scope.codecs) {
    for (const PointSummary& point : codec.points) {
      std::string cells = element("th", html_text(codec.codec), "scope=\"row\"") +
                          element("td", html_text(point.point)) +
                          number_cell(with_half_interval(point.kbps, 2), interval_text(point.kbps)) +
                          number_cell(number_or_dash(point.payload_kbps, 2));
      for (std::size_t i = 0; i < metrics.size(); ++i) cells += score_cell(point, metrics[i], digits[i]);
      cells += number_cell(std::to_string(point.rows.size()) +
                           (point.failed ? " (" + std::to_string(point.failed) + ")" : ""));
      cells += delay_cell(point);
      rows += element("tr", cells, &point == &codec.points.front() ? "class=\"first\"" : "");
    }
  }
  if (rows.empty()) return "";
  return element("div", element("table", element("thead", table_row(head)) + element("tbody", rows)),
                 "class=\"wide\"");
}

}  // namespace

std::string results_section(const ReportData& data) {
  const std::string tables = of_scopes(data, [&](const Scope& scope) { return results_table(data, scope); });
  if (tables.empty()) return "";
  return element(
             "p",
             "Means over recordings; ± is half the width of the interval that holds the mean with the "
             "confidence stated above. kbps are all file bytes x 8 over all seconds, containers included; "
             "payload leaves containers out. Delay is what the decoded sound came late by, found by "
             "correlation and taken out before scoring.") +
         tables;
}

std::string costs_section(const ReportData& data) {
  if (data.results.costs.empty()) return "";
  const std::string head = heading("codec") + heading("point") + heading("encoding", "x real time") +
                           heading("decoding", "x real time") + heading("peak memory", "MiB") +
                           heading("latency", "ms, algorithmic") + heading("start-up", "ms");
  std::string rows;
  const std::string* previous = nullptr;
  for (const CodecCost& cost : data.results.costs) {
    const std::string cells =
        element("th", html_text(cost.codec), "scope=\"row\"") + element("td", html_text(cost.point)) +
        number_cell(number_or_dash(cost.encode_real_time, 1)) +
        number_cell(number_or_dash(cost.decode_real_time, 1)) +
        number_cell(number_or_dash(cost.peak_memory_mib, 1)) +
        number_cell(number_or_dash(cost.latency_ms, 1)) + number_cell(number_or_dash(cost.start_up_ms, 1));
    rows += element("tr", cells, !previous || *previous != cost.codec ? "class=\"first\"" : "");
    previous = &cost.codec;
  }
  return element(
             "p",
             "On one thread, apart from the scores. Real time factors are seconds of sound per second: "
             "above 1 is faster than real time. Latency is what the algorithm itself waits for, found with "
             "an impulse.") +
         element("div", element("table", element("thead", table_row(head)) + element("tbody", rows)),
                 "class=\"wide\"");
}

std::string number_or_dash(double value, int digits) {
  return std::isfinite(value) ? fixed(value, digits) : "-";
}

std::string with_half_interval(const Interval& interval, int digits, bool sign) {
  if (!std::isfinite(interval.mean)) return "-";
  const std::string mean = (sign && interval.mean > 0 ? "+" : "") + fixed(interval.mean, digits);
  if (interval.count < 2) return mean;
  return mean + " ± " + fixed((interval.high - interval.low) / 2, digits);
}

std::string interval_text(const Interval& interval) {
  const std::string count =
      std::to_string(interval.count) + (interval.count == 1 ? " recording" : " recordings");
  if (interval.count < 2) return count;
  return train::rounded(interval.low) + " to " + train::rounded(interval.high) + ", " + count;
}

int digits_for(double largest) {
  return largest >= 1000 ? 0 : largest >= 100 ? 1 : largest >= 10 ? 2 : 3;
}

}  // namespace tessera::bench
