// Codecs against each other: how many bytes for the same score (BD-rate, all pairs), and which score for
// about the same bytes (on the same recordings).
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "apps/bench/html.h"
#include "apps/bench/report_parts.h"
#include "metrics/metric.h"
#include "train/text.h"

namespace tessera::bench {
namespace {

using train::fixed;

constexpr double kNear = 1.5;  // a pair of rates is compared up to this factor

std::string signed_fixed(double value, int digits) {
  return (value > 0 ? "+" : "") + fixed(value, digits);
}

/// The codec asked for, or the first.
const CodecSummary* anchor_of(const ReportData& data, const Scope& scope) {
  const auto found = std::ranges::find(scope.codecs, data.options.anchor, &CodecSummary::codec);
  if (found != scope.codecs.end()) return &*found;
  return scope.codecs.empty() ? nullptr : &scope.codecs.front();
}

/// The scope's codecs that have a score of this metric, the anchor first.
std::vector<const CodecSummary*> compared(const ReportData& data, const Scope& scope,
                                          const std::string& metric) {
  std::vector<const CodecSummary*> codecs;
  for (const CodecSummary& codec : scope.codecs) {
    const bool scored =
        std::ranges::any_of(codec.points, [&](const PointSummary& point) { return point.score(metric); });
    if (scored) codecs.push_back(&codec);
  }
  const auto anchor = std::ranges::find(codecs, anchor_of(data, scope));
  if (anchor != codecs.end()) std::rotate(codecs.begin(), anchor, anchor + 1);
  return codecs;
}

BdRate rate_of_pair(const CodecSummary& anchor, const CodecSummary& tested, const std::string& metric,
                    metrics::Better better, const BootstrapOptions& options) {
  const auto samples = common_samples({&anchor, &tested}, metric);
  if (samples[0].front().scores.empty()) {
    BdRate none;
    none.reason = "no recording that both have at all their points";
    return none;
  }
  return bd_rate(samples[0], samples[1], better, options);
}

/// a against b from b against a: one needs the ratio of the other's rates the other way round.
BdRate inverse(const BdRate& rate) {
  const auto inverted = [](const std::optional<double>& percent) {
    return percent ? std::optional<double>((1 / (1 + *percent / 100) - 1) * 100) : std::nullopt;
  };
  BdRate result = rate;
  result.percent = inverted(rate.percent);
  result.low = inverted(rate.high);
  result.high = inverted(rate.low);
  return result;
}

std::string bd_cell(const BdRate& rate) {
  if (!rate.percent) return number_cell("-", rate.reason);
  std::string text = signed_fixed(*rate.percent, 1) + " %";
  if (rate.low && rate.high) {
    text += " (" + signed_fixed(*rate.low, 1) + " to " + signed_fixed(*rate.high, 1) + ")";
  } else {
    text += " (no interval)";
  }
  std::string tooltip = "scores " + train::rounded(rate.from_score) + " to " + train::rounded(rate.to_score);
  if (rate.dropped) tooltip += "; " + std::to_string(rate.dropped) + " points left out that another beats";
  if (!rate.reason.empty()) tooltip += "; " + rate.reason;
  return number_cell(text, tooltip);
}

/// All codecs against each other by one metric.
struct BdMatrix {
  std::vector<const CodecSummary*> codecs = {};  // the anchor first
  std::vector<BdRate> rates = {};                // [tested, against]
  const BdRate& at(std::size_t tested, std::size_t against) const {
    return rates[tested * codecs.size() + against];
  }
};

/// Without codecs where nobody knows which way of the metric is better.
BdMatrix bd_matrix(const ReportData& data, const Scope& scope, const std::string& metric) {
  BdMatrix matrix;
  const metrics::MetricInfo* info = metrics::find_metric(metric);
  if (!info) return matrix;
  matrix.codecs = compared(data, scope, metric);
  const std::size_t n = matrix.codecs.size();
  matrix.rates.resize(n * n);
  for (std::size_t row = 1; row < n; ++row) {
    for (std::size_t column = 0; column < row; ++column) {
      const CodecSummary &a = *matrix.codecs[column], &b = *matrix.codecs[row];
      BdRate rate = rate_of_pair(a, b, metric, info->better, data.options.bootstrap);
      matrix.rates[column * n + row] =  // without a number for the sake of the reason, which names the roles
          rate.percent ? inverse(rate) : rate_of_pair(b, a, metric, info->better, data.options.bootstrap);
      matrix.rates[row * n + column] = std::move(rate);
    }
  }
  return matrix;
}

std::string column(const std::string& name) {
  return element("th", html_text(name), "scope=\"col\"");
}

std::string wide_table(const std::string& head, const std::string& rows) {
  return element("div", element("table", element("thead", table_row(head)) + element("tbody", rows)),
                 "class=\"wide\"");
}

/// Row against column.
std::string matrix_table(const BdMatrix& matrix) {
  std::string head = element("td", ""), rows;
  for (const CodecSummary* codec : matrix.codecs) head += column("against " + codec->codec);
  for (std::size_t i = 0; i < matrix.codecs.size(); ++i) {
    std::string cells = element("th", html_text(matrix.codecs[i]->codec), "scope=\"row\"");
    for (std::size_t j = 0; j < matrix.codecs.size(); ++j) {
      cells += i == j ? number_cell("") : bd_cell(matrix.at(i, j));
    }
    rows += table_row(cells);
  }
  return wide_table(head, rows);
}

/// Codecs against the anchor by every metric, then all pairs, folded.
std::string bd_tables(const ReportData& data, const Scope& scope) {
  const CodecSummary* anchor = anchor_of(data, scope);
  std::map<const CodecSummary*, std::string> cells;  // of the first table, by codec
  std::string head = element("td", ""), pairs;
  for (const std::string& metric : data.results.metrics) {
    const BdMatrix matrix = bd_matrix(data, scope, metric);
    if (matrix.codecs.size() < 2) continue;
    head += column(metric);
    pairs += element("h3", html_text(metric)) + matrix_table(matrix);
    const bool anchored = matrix.codecs.front() == anchor;
    for (const CodecSummary& codec : scope.codecs) {
      const auto found = std::ranges::find(matrix.codecs, &codec);
      cells[&codec] += anchored && found != matrix.codecs.end()
                           ? bd_cell(matrix.at(static_cast<std::size_t>(found - matrix.codecs.begin()), 0))
                           : number_cell("-", "no score");
    }
  }
  if (pairs.empty()) return "";
  std::string rows;
  for (const CodecSummary& codec : scope.codecs) {
    if (&codec == anchor) continue;
    rows += table_row(element("th", html_text(codec.codec), "scope=\"row\"") + cells[&codec]);
  }
  return element("h3", "Against " + html_text(anchor->codec)) + wide_table(head, rows) +
         folding("all pairs", pairs, false);
}

/// The anchor's point of the nearest rate, or null when none is near.
const PointSummary* nearest(const CodecSummary& anchor, const PointSummary& point) {
  const PointSummary* best = nullptr;
  double least = kNear;
  for (const PointSummary& candidate : anchor.points) {
    if (candidate.rows.empty() || point.rows.empty()) continue;
    const double ratio = candidate.kbps.mean / point.kbps.mean, factor = std::max(ratio, 1 / ratio);
    if (factor > least) continue;
    least = factor;
    best = &candidate;
  }
  return best;
}

std::optional<PairedComparison> compare(const PointSummary& anchor, const PointSummary& tested,
                                        const std::string& metric, const BootstrapOptions& options) {
  std::vector<double> a, b;
  for (const auto& [key, row] : tested.rows) {
    const auto partner = anchor.rows.find(key);
    if (partner == anchor.rows.end()) continue;
    const double* before = score_of(*partner->second, metric);
    const double* after = score_of(*row, metric);
    if (!before || !after) continue;
    a.push_back(*before);
    b.push_back(*after);
  }
  if (a.empty()) return std::nullopt;
  return compare_paired(a, b, options);
}

std::string paired_cell(const std::optional<PairedComparison>& pair, const std::string& metric) {
  if (!pair) return number_cell("-", "no recording with both scores");
  const Interval& difference = pair->difference;
  std::string text = with_half_interval(difference, 3, true);
  const metrics::MetricInfo* info = metrics::find_metric(metric);
  if (info && difference.count > 1 && (difference.low > 0 || difference.high < 0)) {
    text += (difference.low > 0) == (info->better == metrics::Better::higher) ? " ▲" : " ▼";
  }
  return number_cell(text, interval_text(difference) + "; higher in " + std::to_string(pair->higher) +
                               ", lower in " + std::to_string(pair->lower) + ", equal in " +
                               std::to_string(pair->equal) + "; sign test p = " + train::rounded(pair->p));
}

std::string paired_table(const ReportData& data, const Scope& scope) {
  const CodecSummary* anchor = anchor_of(data, scope);
  std::string rows;
  for (const CodecSummary& codec : scope.codecs) {
    bool first = true;
    for (const PointSummary& point : codec.points) {
      const PointSummary* partner = &codec == anchor ? nullptr : nearest(*anchor, point);
      if (!partner) continue;
      std::string cells = element("th", html_text(codec.codec + ", " + point.point), "scope=\"row\"") +
                          number_cell(fixed(point.kbps.mean, 2)) +
                          element("td", html_text(anchor->codec + ", " + partner->point)) +
                          number_cell(fixed(partner->kbps.mean, 2));
      for (const std::string& metric : data.results.metrics) {
        cells += paired_cell(compare(*partner, point, metric, data.options.bootstrap), metric);
      }
      rows += element("tr", cells, first ? "class=\"first\"" : "");
      first = false;
    }
  }
  if (rows.empty()) return "";
  std::string head;
  for (const char* name : {"codec", "kbps", "against", "kbps"}) head += column(name);
  for (const std::string& metric : data.results.metrics) head += column(metric);
  return wide_table(head, rows);
}

}  // namespace

std::string bd_rate_section(const ReportData& data) {
  const std::string tables = of_scopes(data, [&](const Scope& scope) { return bd_tables(data, scope); });
  if (tables.empty()) return "";
  return element("p",
                 "How many percent more bytes (+) or fewer (-) a codec takes than the one it stands against "
                 "for the same "
                 "score, averaged over the scores that both reach (Bjontegaard delta rate); in brackets the "
                 "interval "
                 "over recordings. \"-\": no number; the reason is shown under the pointer. Nothing is "
                 "extrapolated: "
                 "two codecs that share no score cannot be compared so.") +
         tables;
}

std::string paired_section(const ReportData& data) {
  const std::string tables = of_scopes(data, [&](const Scope& scope) { return paired_table(data, scope); });
  if (tables.empty()) return "";
  return element(
             "p",
             "Differences of scores on the same recordings, codec minus the anchor's point of the nearest "
             "rate "
             "(within a factor of 1.5; mind the two rates). ▲: better than the anchor, ▼: worse, beyond what "
             "the choice of recordings explains; without a mark the interval holds 0. Wins, losses and the "
             "sign test are shown under the pointer.") +
         tables;
}

}  // namespace tessera::bench
