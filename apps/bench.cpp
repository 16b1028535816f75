// tessera bench audio: codecs on folders of recordings become tables, a report and statistics.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "apps/bench/cost.h"
#include "apps/bench/plan.h"
#include "apps/bench/process_probe.h"
#include "apps/bench/rate_chart.h"
#include "apps/bench/report.h"
#include "apps/bench/result_cache.h"
#include "apps/bench/results_io.h"
#include "apps/bench/runners.h"
#include "apps/bench/suite.h"
#include "apps/commands.h"
#include "apps/progress.h"
#include "core/cpu.h"

namespace tessera::app {
namespace {

using bench::LeftOut;
using bench::PlannedCodec;
using bench::ResultRow;
using bench::Results;
using bench::Series;

std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name") && line.find(':') + 2 < line.size()) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc)};
}

std::string command_line(const BenchOptions& options) {
  std::string text = "tessera bench audio";
  const auto add = [&](const char* name, const std::vector<std::string>& words) {
    if (words.empty()) return;
    text += std::string(" ") + name;
    for (const std::string& word : words) {
      text += word.find_first_of(" *'\"$\\;") == std::string::npos ? " " + word : " '" + word + "'";
    }
  };
  add("--data", options.data);
  add("--out", {options.folder});
  add("--codecs", options.codecs);
  add("--points", options.points);
  std::string metrics;
  for (const std::string& name : options.metrics) metrics += (metrics.empty() ? "" : ",") + name;
  if (!metrics.empty()) add("--metrics", {metrics});
  if (!options.models.empty()) add("--models", {options.models});
  add("--align", options.alignments);
  for (const double loss : options.losses) add("--loss", {nlohmann::json(loss).dump()});
  if (!options.losses.empty()) {
    add("--burst", {nlohmann::json(options.burst).dump(), "--seed", std::to_string(options.seed)});
  }
  if (options.limit > 0) add("--limit", {std::to_string(options.limit)});
  return text;
}

std::map<std::string, std::string> facts_of(const BenchOptions& options, const bench::RunOutcome& outcome,
                                            const std::vector<PlannedCodec>& codecs,
                                            const bench::MetricVersions& versions) {
  std::map<std::string, std::string> facts;
  facts["tessera"] = TESSERA_VERSION;
  facts["command"] = command_line(options);
  facts["date"] = today();
  facts["machine"] = machine() + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, " +
                     cpu_target() + " kernels";
  facts["data hash"] = outcome.data_hash;
  for (const auto& [name, version] : versions) facts["metric " + name] = "version " + version;
  for (const PlannedCodec& codec : codecs) facts["codec " + codec.runner->name()] = codec.runner->version();
  std::map<std::string, std::map<std::string, double>> sets;
  for (const ResultRow& row : outcome.rows) sets[row.set][row.recording] = row.seconds;
  for (const auto& [set, recordings] : sets) {
    double seconds = 0;
    for (const auto& [name, length] : recordings) seconds += length;
    facts["set " + set] = std::to_string(recordings.size()) + " recordings, " + fixed(seconds, 1) + " s";
  }
  return facts;
}

// Metrics that are networks allocate and free hundreds of megabytes for every recording. Given back each time
// and made anew page by page, that was a fifth of the processor time of DNSMOS (7.4 s against 6.0 s for 52 s
// of sound).
void keep_freed_memory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

// About 6 s long: enough to get going, short enough to repeat.
std::vector<std::string> recordings_for_cost(const std::vector<bench::Recording>& recordings,
                                             const std::vector<ResultRow>& rows) {
  std::map<std::pair<std::string, std::string>, double> seconds;
  for (const ResultRow& row : rows) seconds[{row.set, row.recording}] = row.seconds;
  std::vector<std::pair<double, std::string>> candidates;
  for (const bench::Recording& recording : recordings) {
    const auto found = seconds.find({recording.set, recording.name});
    if (found != seconds.end() && found->second > 0) {
      candidates.emplace_back(std::abs(found->second - 6), recording.path);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  candidates.resize(std::min<std::size_t>(candidates.size(), 3));
  std::vector<std::string> paths;
  for (auto& candidate : candidates) paths.push_back(std::move(candidate.second));
  return paths;
}

class AudioBench {
 public:
  AudioBench(const BenchOptions& options, Session& session)
      : options_(options), session_(session), stop_(session.interrupt.defer()) {}

  Result<ExitCode> run() {
    std::optional<bench::ProcessProbe> probe;
    if (options_.cost) {
      auto started = bench::ProcessProbe::start(bench::make_runner);
      if (!started) return started.error();
      probe = *std::move(started);
    }
    keep_freed_memory();
    const auto suite = bench::plan_metrics(options_.metrics, options_.models, options_.alignments, left_out_);
    if (!suite) return suite.error();
    const auto versions = bench::metric_versions(*suite, options_.models);
    if (!versions) return versions.error();
    auto codecs = bench::plan_codecs(options_.codecs, left_out_);
    if (!codecs) return codecs.error();
    codecs_ = *std::move(codecs);
    std::vector<bench::LossOptions> losses;
    for (const double rate : options_.losses) {
      losses.push_back({rate, options_.burst, static_cast<std::uint64_t>(options_.seed)});
    }
    const auto series = bench::plan_series(codecs_, options_.points, losses, left_out_);
    if (!series) return series.error();
    bench::DataOptions data;
    data.folders = options_.data;
    data.limit = options_.limit;
    const auto recordings = bench::find_recordings(data);
    if (!recordings) return recordings.error();
    if (!options_.anchor.empty() && !has_codec(options_.anchor)) {
      return Error{ErrorCode::usage, "--anchor: expected a codec that is measured, got " + options_.anchor};
    }
    const auto without = bench::uncovered(*suite, *recordings);
    if (!without) return without.error();
    for (const std::string& note : *without) session_.report.note(note);
    for (const LeftOut& one : left_out_) session_.report.note("without " + one.what + ": " + one.reason);

    auto outcome = measure(*recordings, *series, *suite, *versions);
    if (!outcome) return outcome.error();
    if (outcome->stopped) return stopped();
    for (const std::string& note : outcome->notes) session_.report.note(note);
    Results results;
    for (const metrics::MetricInfo* metric : suite->available()) results.metrics.emplace_back(metric->name);
    results.facts = facts_of(options_, *outcome, codecs_, *versions);
    for (const Series& one : *series) {
      results.recipes[one.runner->name() + ", " + one.point.name] = one.runner->recipe(one.point);
    }
    if (probe) {
      auto costs =
          measure_costs(*series, recordings_for_cost(*recordings, outcome->rows), outcome->rows, *probe);
      if (!costs) return costs.error();
      if (stop_) return stopped();
      results.costs = *std::move(costs);
    }
    results.rows = std::move(outcome->rows);
    results.examples = std::move(outcome->examples);
    return write(results, *outcome);
  }

 private:
  bool has_codec(const std::string& name) const {
    return std::any_of(codecs_.begin(), codecs_.end(),
                       [&](const PlannedCodec& codec) { return codec.runner->name() == name; });
  }

  Error stopped() const {
    return {ErrorCode::damaged, "stopped before the end; the same command goes on from here"};
  }

  Result<bench::RunOutcome> measure(const std::vector<bench::Recording>& recordings,
                                    const std::vector<Series>& series, const metrics::MetricSuite& suite,
                                    const bench::MetricVersions& versions) {
    Progress progress("measuring", session_.report.progress());
    bench::RunOptions run;
    run.folder = options_.folder;
    run.threads = options_.threads;
    run.examples = options_.examples;
    run.stop = [this] { return stop_.load(); };
    run.progress = [&](double done_s, double total_s) { progress.update(done_s, total_s); };
    return bench::run_suite(recordings, series, suite, versions, run);
  }

  const std::string& spec_of(const Series& series) const {
    return std::find_if(codecs_.begin(), codecs_.end(),
                        [&](const PlannedCodec& codec) { return codec.runner.get() == series.runner; })
        ->spec;
  }

  Result<std::vector<bench::CodecCost>> measure_costs(const std::vector<Series>& series,
                                                      const std::vector<std::string>& recordings,
                                                      const std::vector<ResultRow>& rows,
                                                      bench::ProcessProbe& probe) {
    std::vector<bench::CodecCost> costs;
    if (recordings.empty()) return costs;
    const auto cache = bench::ResultCache::open(options_.folder + "/cache");
    if (!cache) return cache.error();
    bench::CostOptions options;
    options.recordings = recordings;
    Progress progress("measuring cost", session_.report.progress());
    for (std::size_t i = 0; i < series.size() && !stop_; ++i) {
      const Series& one = series[i];
      if (one.loss.rate > 0) continue;
      bench::SeriesKey key;
      key.codec = one.runner->name();
      key.point = one.point.name;
      const auto outcome =
          bench::measure_cost_once(*cache, *one.runner, one.point, spec_of(one),
                                   bench::median_delay(rows, key), probe, options, machine());
      if (!outcome) return outcome.error();
      for (const std::string& note : outcome->notes) session_.report.note(note);
      costs.push_back(outcome->cost);
      progress.update(static_cast<double>(i + 1), static_cast<double>(series.size()));
    }
    return costs;
  }

  // The report's charts over all recordings as files, for other pages.
  Result<void> write_charts(const Results& results) const {
    const std::string folder = options_.folder + "/charts";
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return Error{ErrorCode::io, "cannot make " + folder + ": " + failed.message()};
    for (const std::string& metric : results.metrics) {
      const std::string path = folder + "/" + metric + ".svg";
      if (auto written = bench::write_rate_distortion_svg(path, results, metric); !written) return written;
    }
    return {};
  }

  Result<ExitCode> write(const Results& results, const bench::RunOutcome& outcome) {
    if (const auto written = bench::write_results(options_.folder, results); !written) return written.error();
    bench::ReportOptions report;
    report.anchor = options_.anchor;
    report.folder = options_.folder;
    report.left_out = left_out_;
    const std::string page = options_.folder + "/report.html";
    if (const auto written = bench::write_report(page, results, report); !written) return written.error();
    if (const auto written = write_charts(results); !written) return written.error();
    int shown = 0;
    for (const ResultRow& row : results.rows) {
      if (row.error.empty() || ++shown > 5) continue;
      session_.report.warning(row.set + ", " + row.recording + ", " + row.codec + ", " + row.point + ": " +
                              row.error);
    }
    const std::string failed = std::to_string(outcome.failed) + " of " + std::to_string(results.rows.size());
    if (shown > 5) {
      session_.report.warning(failed + " rows have errors; " + options_.folder + "/results.csv lists them");
    }
    const Json object = {{"rows", results.rows.size()},
                         {"computed", outcome.computed},
                         {"from_cache", outcome.from_cache},
                         {"failed", outcome.failed},
                         {"report", page}};
    session_.report.summary(object, std::to_string(results.rows.size()) + " rows, " +
                                        std::to_string(outcome.from_cache) + " of them known before; " +
                                        page);
    return outcome.failed > 0 ? ExitCode::damaged : ExitCode::ok;
  }

  const BenchOptions& options_;
  Session& session_;
  const std::atomic<bool>& stop_;
  std::vector<LeftOut> left_out_ = {};
  std::vector<PlannedCodec> codecs_ = {};
};

}  // namespace

Result<ExitCode> run(const BenchOptions& options, Session& session) {
  return AudioBench(options, session).run();
}

}  // namespace tessera::app
