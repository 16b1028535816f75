#include "apps/bench/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tessera::bench {
namespace {

/// Whether the row says at what rate the recording was coded; it may lack scores, and say why.
bool has_rate(const ResultRow& row) {
  return std::isfinite(row.seconds) && row.seconds > 0 && row.file_bytes > 0;
}

/// All bytes over all seconds. Its interval is that of the mean of the rate's linear part in each recording,
/// r + (bytes - r seconds) / mean seconds: long recordings weigh as much as they take.
Interval pooled_rate(const std::map<RecordingKey, const ResultRow*>& rows, const BootstrapOptions& options) {
  double kilobits = 0, seconds = 0;
  for (const auto& [key, row] : rows) {
    kilobits += static_cast<double>(row->file_bytes) * 8 / 1000;
    seconds += row->seconds;
  }
  if (rows.empty()) return mean_interval({}, options);
  const double rate = kilobits / seconds, mean_seconds = seconds / static_cast<double>(rows.size());
  std::vector<double> values;
  for (const auto& [key, row] : rows) {
    values.push_back(rate +
                     (static_cast<double>(row->file_bytes) * 8 / 1000 - rate * row->seconds) / mean_seconds);
  }
  return mean_interval(values, options);
}

double pooled_payload(const std::map<RecordingKey, const ResultRow*>& rows) {
  double kilobits = 0, seconds = 0;
  for (const auto& [key, row] : rows) {
    if (row->payload_bytes < 0) return std::numeric_limits<double>::quiet_NaN();
    kilobits += static_cast<double>(row->payload_bytes) * 8 / 1000;
    seconds += row->seconds;
  }
  return kilobits / seconds;
}

void finish(PointSummary& point, const std::vector<std::string>& metrics, const BootstrapOptions& options) {
  point.kbps = pooled_rate(point.rows, options);
  point.payload_kbps = pooled_payload(point.rows);
  for (const std::string& metric : metrics) {
    std::vector<double> values;
    for (const auto& [key, row] : point.rows) {
      if (const double* score = score_of(*row, metric)) values.push_back(*score);
    }
    if (!values.empty()) point.scores[metric] = mean_interval(values, options);
  }
}

/// Finds the element of that name, or appends one.
template <class T>
T& named(std::vector<T>& all, std::string T::*name, const std::string& wanted) {
  const auto found = std::ranges::find(all, wanted, name);
  if (found != all.end()) return *found;
  all.emplace_back();
  all.back().*name = wanted;
  return all.back();
}

void add(PointSummary& point, const ResultRow& row) {
  if (has_rate(row)) {
    point.rows[{row.set, row.recording}] = &row;
  } else {
    ++point.failed;
  }
}

bool cheaper(const PointSummary& a, const PointSummary& b) {  // without a rate first: NaN has no order
  if (a.rows.empty() || b.rows.empty()) return a.rows.empty() && !b.rows.empty();
  return a.kbps.mean < b.kbps.mean;
}

}  // namespace

const double* score_of(const ResultRow& row, const std::string& metric) {
  const auto found = row.scores.find(metric);
  return found != row.scores.end() && std::isfinite(found->second) ? &found->second : nullptr;
}

const Interval* PointSummary::score(const std::string& metric) const {
  const auto found = scores.find(metric);
  return found == scores.end() ? nullptr : &found->second;
}

Scope summarize_set(const Results& results, const std::string& set, const BootstrapOptions& options) {
  Scope scope;
  scope.name = set.empty() ? "all recordings" : set;
  std::vector<std::string> order;  // of all results: a codec that lacks in one set keeps its style there
  for (const ResultRow& row : results.rows) {
    if (row.loss_rate > 0) continue;
    if (std::ranges::find(order, row.codec) == order.end()) order.push_back(row.codec);
    if (!set.empty() && row.set != set) continue;
    CodecSummary& codec = named(scope.codecs, &CodecSummary::codec, row.codec);
    codec.style = static_cast<int>(std::ranges::find(order, row.codec) - order.begin());
    add(named(codec.points, &PointSummary::point, row.point), row);
  }
  for (CodecSummary& codec : scope.codecs) {
    for (PointSummary& point : codec.points) finish(point, results.metrics, options);
    std::ranges::stable_sort(codec.points, cheaper);
  }
  return scope;
}

std::vector<Scope> summarize(const Results& results, const BootstrapOptions& options) {
  std::set<std::string> sets;
  for (const ResultRow& row : results.rows) {
    if (!(row.loss_rate > 0)) sets.insert(row.set);
  }
  std::vector<Scope> scopes = {summarize_set(results, "", options)};
  if (sets.size() < 2) return scopes;
  for (const std::string& set : sets) {
    if (!set.empty()) scopes.push_back(summarize_set(results, set, options));
  }
  return scopes;
}

std::vector<CodecSummary> summarize_loss(const Results& results, const BootstrapOptions& options) {
  using Series = std::pair<std::string, std::string>;  // codec and point
  std::map<Series, std::map<double, PointSummary>> series;
  std::vector<Series> order;
  for (const ResultRow& row : results.rows) {
    if (row.loss_rate > 0 && series.try_emplace({row.codec, row.point}).second) {
      order.emplace_back(row.codec, row.point);
    }
  }
  for (const ResultRow& row : results.rows) {
    const auto found = series.find({row.codec, row.point});
    if (found != series.end()) add(found->second[row.loss_rate], row);
  }
  std::vector<CodecSummary> curves;
  for (const Series& key : order) {
    CodecSummary curve;
    curve.codec = key.first + ", " + key.second;
    curve.style = static_cast<int>(curves.size());
    for (auto& [loss_rate, point] : series[key]) {
      point.point = key.second;
      point.loss_rate = loss_rate;
      finish(point, results.metrics, options);
      curve.points.push_back(std::move(point));
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<std::vector<PointSamples>> common_samples(const std::vector<const CodecSummary*>& codecs,
                                                      const std::string& metric) {
  // A point without this score is no point of its codec; a recording must be at all the others.
  std::map<RecordingKey, std::size_t> seen;
  std::size_t points = 0;
  for (const CodecSummary* codec : codecs) {
    for (const PointSummary& point : codec->points) {
      if (!point.score(metric)) continue;
      ++points;
      for (const auto& [key, row] : point.rows) seen[key] += score_of(*row, metric) ? 1 : 0;
    }
  }
  std::vector<std::vector<PointSamples>> result(codecs.size());
  for (std::size_t i = 0; i < codecs.size(); ++i) {
    for (const PointSummary& point : codecs[i]->points) {
      if (!point.score(metric)) continue;
      PointSamples& samples = result[i].emplace_back();
      for (const auto& [key, row] : point.rows) {
        if (seen.at(key) != points) continue;
        samples.bytes.push_back(static_cast<double>(row->file_bytes));
        samples.seconds.push_back(row->seconds);
        samples.scores.push_back(*score_of(*row, metric));
      }
    }
  }
  return result;
}

}  // namespace tessera::bench
