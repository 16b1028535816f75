#include "apps/bench/suite.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "apps/bench/examples.h"
#include "apps/bench/result_cache.h"
#include "codec/media.h"
#include "core/hash.h"
#include "core/thread_pool.h"

namespace tessera::bench {
namespace {

// One recording at one point of one codec.
struct Job {
  std::string key = {};
  std::optional<Measurement> measurement = {};  // from the cache, then as measured
  std::string error = {};
  std::string example = {};  // path below the folder; empty: none is kept
  bool write_example = false, measure = true, done = false;
};

struct Work {
  std::string hash = {};
  double seconds = 0;            // about, until it is read
  MetricVersions versions = {};  // that count for it
  std::vector<Job> jobs = {};
  std::optional<Example> original = {};
  std::vector<std::string> notes = {};

  std::int64_t to_run() const {
    return std::count_if(jobs.begin(), jobs.end(), [](const Job& job) { return !job.done; });
  }
};

class Run {
 public:
  Run(const std::vector<Recording>& recordings, const std::vector<Series>& series,
      const metrics::MetricSuite& suite, const MetricVersions& versions, const RunOptions& options,
      const ResultCache& cache)
      : recordings_(recordings),
        series_(series),
        suite_(suite),
        versions_(versions),
        options_(options),
        cache_(cache),
        work_(recordings.size()) {}

  Result<RunOutcome> go() {
    choose_examples();
    ThreadPool pool(options_.threads);
    const auto count = static_cast<int>(recordings_.size());
    pool.parallel_for(count, [&](int i) { guarded(i, &Run::look_up); });
    for (const Work& work : work_) total_s_ += work.seconds * static_cast<double>(work.to_run());
    // The longest first, so that no thread is left with one at the end.
    std::vector<int> order(recordings_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost_of(a) > cost_of(b); });
    pool.parallel_for(count, [&](int i) { guarded(order[static_cast<std::size_t>(i)], &Run::compute); });
    if (fatal_) return *fatal_;
    return outcome();
  }

 private:
  double cost_of(int i) const {
    const Work& work = work_[static_cast<std::size_t>(i)];
    return work.seconds * static_cast<double>(work.to_run());
  }

  bool stopped() {
    if (options_.stop && options_.stop()) stopped_ = true;
    return stopped_ || broken_;
  }

  void break_off(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!fatal_) fatal_ = error;
    broken_ = true;
  }

  // The pool's loops must not throw: what does (memory that ran out) ends the run with an error.
  void guarded(int i, void (Run::*step)(std::size_t)) {
    if (stopped()) return;
    try {
      (this->*step)(static_cast<std::size_t>(i));
    } catch (const std::exception& error) {
      break_off({ErrorCode::io, recordings_[static_cast<std::size_t>(i)].path + ": " + error.what()});
    }
  }

  void fail_all(Work& work, const std::string& reason) {
    for (Job& job : work.jobs) {
      if (job.done) continue;
      if (job.measure) job.measurement.reset();  // what there is lacks metrics
      job.error = reason;
      job.done = true;
    }
  }

  void choose_examples() {
    const std::size_t n = recordings_.size();
    const std::size_t kept = std::min(n, static_cast<std::size_t>(std::max(options_.examples, 0)));
    for (std::size_t i = 0; i < kept; ++i) {
      const std::size_t chosen = (2 * i + 1) * n / (2 * kept);
      Example& example = work_[chosen].original.emplace();
      example.set = recordings_[chosen].set;
      example.recording = recordings_[chosen].name;
    }
  }

  bool missing(const std::string& path) const {
    return !std::filesystem::exists(options_.folder + "/" + path);
  }

  void look_up(std::size_t i) {
    Work& work = work_[i];
    work.jobs.resize(series_.size());
    work.versions = versions_for(recordings_[i].name, versions_, suite_);
    auto hash = hash_of_file(recordings_[i].path);
    if (!hash) return fail_all(work, hash.error().message);
    work.hash = *std::move(hash);
    if (work.original) work.original->path = example_path(*work.original, work.hash);
    for (std::size_t s = 0; s < series_.size(); ++s) {
      Job& job = work.jobs[s];
      job.key = cache_key(work.hash, *series_[s].runner, series_[s].point, series_[s].loss);
      if (const auto found = cache_.find(job.key)) job.measurement = measurement_from(*found);
      job.measure = !job.measurement || !job.measurement->covers(work.versions);
      if (work.original && series_[s].loss.rate == 0) {
        Example example = *work.original;
        example.codec = series_[s].runner->name();
        example.point = series_[s].point.name;
        job.example = example_path(example, job.key);
        job.write_example = missing(job.example);
      }
      job.done = !job.measure && !job.write_example;
    }
    if (work.to_run() == 0) return;
    const auto reader = AudioReader::open(recordings_[i].path);
    if (!reader) return fail_all(work, reader.error().message);
    const AudioInfo& info = reader->input();
    work.seconds =
        info.frames ? static_cast<double>(*info.frames) / info.sample_rate_hz : info.duration_s.value_or(1);
  }

  void compute(std::size_t i) {
    Work& work = work_[i];
    const bool original = work.original && !work.original->path.empty() && missing(work.original->path);
    if (work.to_run() == 0 && !original) return;
    const auto sound = read_recording(recordings_[i].path);
    if (!sound) return fail_all(work, sound.error().message);
    work.notes = sound->notes;
    if (original) {
      const auto written = write_example(options_.folder + "/" + work.original->path, sound->pcm,
                                         sound->sample_rate_hz, 0, sound->pcm.size());
      if (!written) return break_off(written.error());
    }
    for (std::size_t s = 0; s < series_.size(); ++s) {
      if (work.jobs[s].done) continue;
      if (stopped()) return;
      compute_one(work.jobs[s], series_[s], *sound, work.versions, recordings_[i].name);
      tell(work.seconds);
    }
  }

  void compute_one(Job& job, const Series& series, const Sound& sound, const MetricVersions& versions,
                   const std::string& recording) {
    const auto coded = run_codec(*series.runner, series.point, sound.pcm, sound.sample_rate_hz, series.loss);
    job.done = true;
    if (!coded) {
      job.error = coded.error().message;
      job.measurement.reset();
      return;
    }
    if (job.measure) {
      Measurement measured = measure(*coded, sound.pcm, sound.sample_rate_hz, suite_, versions, recording);
      // Metrics that were not asked for this time keep what they had.
      if (job.measurement) measured.scores.merge(job.measurement->scores);
      job.measurement = std::move(measured);
      if (const auto stored = cache_.store(job.key, to_json(*job.measurement)); !stored) {
        return break_off(stored.error());
      }
    }
    if (job.write_example) {
      const auto written =
          write_example(options_.folder + "/" + job.example, coded->pcm, sound.sample_rate_hz,
                        job.measurement->delay_samples, sound.pcm.size());
      if (!written) break_off(written.error());
    }
  }

  void tell(double seconds) {
    const std::lock_guard lock(mutex_);
    done_s_ += seconds;
    if (options_.progress) options_.progress(done_s_, total_s_);
  }

  ResultRow row_of(const Recording& recording, const Series& series, const Job& job,
                   const MetricVersions& versions) const {
    ResultRow row;
    row.set = recording.set;
    row.recording = recording.name;
    row.codec = series.runner->name();
    row.point = series.point.name;
    row.loss_rate = series.loss.rate;
    row.error = job.error;
    if (!job.measurement) return row;
    const Measurement& measurement = *job.measurement;
    row.seconds = measurement.seconds;
    row.file_bytes = measurement.file_bytes;
    row.payload_bytes = measurement.payload_bytes;
    row.encode_s = measurement.encode_s;
    row.decode_s = measurement.decode_s;
    row.delay_samples = measurement.delay_samples;
    for (const metrics::MetricInfo* metric : suite_.available()) {
      const std::string name(metric->name);
      if (!versions.contains(name)) continue;  // has no value for this recording
      const CachedScore& score = measurement.scores.at(name);
      if (score.error.empty()) {
        row.scores.emplace(name, score.value);
      } else {
        row.error += (row.error.empty() ? "" : "; ") + name + ": " + score.error;
      }
    }
    return row;
  }

  RunOutcome outcome() {
    RunOutcome result;
    std::map<std::string, std::int64_t> notes;
    std::string contents;
    for (std::size_t i = 0; i < recordings_.size(); ++i) {
      const Work& work = work_[i];
      for (const std::string& note : work.notes) ++notes[note];
      contents += recordings_[i].set + "\n" + recordings_[i].name + "\n" + work.hash + "\n";
      bool kept = false;
      for (std::size_t s = 0; s < work.jobs.size(); ++s) {
        const Job& job = work.jobs[s];
        if (!job.done) continue;
        ResultRow row = row_of(recordings_[i], series_[s], job, work.versions);
        if (!row.error.empty()) ++result.failed;
        ++(job.measure ? result.computed : result.from_cache);
        result.rows.push_back(std::move(row));
        if (job.example.empty() || missing(job.example)) continue;
        if (!std::exchange(kept, true)) result.examples.push_back(*work.original);
        Example example = *work.original;
        example.codec = series_[s].runner->name();
        example.point = series_[s].point.name;
        example.path = job.example;
        result.examples.push_back(std::move(example));
      }
    }
    for (const auto& [note, count] : notes) {
      result.notes.push_back(note + " (" + std::to_string(count) + " recordings)");
    }
    result.data_hash = hex(content_hash(std::as_bytes(std::span(contents))));
    result.stopped = stopped_;
    return result;
  }

  const std::vector<Recording>& recordings_;
  const std::vector<Series>& series_;
  const metrics::MetricSuite& suite_;
  const MetricVersions& versions_;
  const RunOptions& options_;
  const ResultCache& cache_;
  std::vector<Work> work_;
  std::atomic<bool> stopped_{false}, broken_{false};
  std::mutex mutex_;  // guards what follows
  std::optional<Error> fatal_;
  double done_s_ = 0, total_s_ = 0;
};

}  // namespace

Result<RunOutcome> run_suite(const std::vector<Recording>& recordings, const std::vector<Series>& series,
                             const metrics::MetricSuite& suite, const MetricVersions& versions,
                             const RunOptions& options) {
  if (recordings.empty() || series.empty()) {
    return Error{ErrorCode::usage, "expected recordings and codecs to measure, got " +
                                       std::to_string(recordings.size()) + " recordings and " +
                                       std::to_string(series.size()) + " points"};
  }
  std::set<std::tuple<std::string, std::string, double>> names;
  for (const Series& one : series) {
    if (names.emplace(one.runner->name(), one.point.name, one.loss.rate).second) continue;
    return Error{ErrorCode::usage, "expected each codec and point once, got " + one.runner->name() + ", " +
                                       one.point.name + " again"};
  }
  const auto cache = ResultCache::open(options.folder + "/cache");
  if (!cache) return cache.error();
  if (options.examples > 0) {
    std::error_code error;
    std::filesystem::create_directories(options.folder + "/examples", error);
    if (error) return Error{ErrorCode::io, options.folder + "/examples: cannot make it: " + error.message()};
  }
  return Run(recordings, series, suite, versions, options, *cache).go();
}

}  // namespace tessera::bench
