#include "train/data/dataset.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/mapped_file.h"
#include "core/thread_pool.h"
#include "train/data/cache.h"
#include "train/data/decimals.h"

namespace tessera::train {
namespace {

constexpr std::size_t kRefusedShown = 20;  // lines of a report
constexpr std::size_t kRefusedNamed = 3;   // in an error

std::string plural(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

enum class Origin { decoded, cached, rebuilt };

/// What became of one file.
struct Prepared {
  std::string cache;
  std::optional<CachedRecording> recording;  // or the reason why not
  std::string reason;
  Origin origin = Origin::decoded;
};

/// Throws ResultError when the cache cannot be written.
Prepared prepare(const SourceFile& file, const DatasetOptions& options) {
  Prepared prepared;
  const auto name = cache_name(file.path, options.sample_rate_hz);
  if (!name) {
    prepared.reason = name.error().message;
    return prepared;
  }
  prepared.cache = (std::filesystem::path(options.cache_folder) / *name).string();
  std::error_code error;
  if (std::filesystem::exists(prepared.cache, error)) {
    if (auto cached = inspect_cache(prepared.cache, options.sample_rate_hz, options.verify_cache)) {
      prepared.recording = *std::move(cached);
      prepared.origin = Origin::cached;
      return prepared;
    }
    prepared.origin = Origin::rebuilt;
  }
  if (auto decoded = decode_to_cache(file.path, options.sample_rate_hz, prepared.cache)) {
    prepared.recording = *std::move(decoded);
  } else {
    prepared.reason = decoded.error().message;
  }
  return prepared;
}

/// All files, in their order, by several threads. Throws the first exception of any.
std::vector<Prepared> prepare_all(const std::vector<SourceFile>& files, const DatasetOptions& options) {
  std::vector<Prepared> prepared(files.size());
  std::mutex mutex;
  std::int64_t done = 0;
  std::exception_ptr trouble;
  ThreadPool pool(options.threads);
  pool.parallel_for(static_cast<int>(files.size()), [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      {
        const std::lock_guard lock(mutex);
        if (trouble) return;  // the rest would be for nothing
      }
      prepared[at] = prepare(files[at], options);
      const std::lock_guard lock(mutex);
      ++done;
      if (options.progress) options.progress(done, static_cast<std::int64_t>(files.size()), files[at].name);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!trouble) trouble = std::current_exception();
    }
  });
  if (trouble) std::rethrow_exception(trouble);
  return prepared;
}

Recording recording_of(const SourceFile& file, const Prepared& prepared) {
  Recording recording;
  recording.name = file.name;
  recording.relative = file.relative;
  recording.path = file.path;
  recording.cache = prepared.cache;
  recording.samples = prepared.recording->samples;
  recording.pcm16 = prepared.recording->pcm16;
  recording.source_rate_hz = prepared.recording->source_rate_hz;
  recording.source_channels = prepared.recording->source_channels;
  return recording;
}

void count(const Recording& recording, const Prepared& prepared, int rate_hz, DatasetReport& report) {
  (prepared.origin == Origin::cached ? report.cached : report.decoded) += 1;
  report.rebuilt += prepared.origin == Origin::rebuilt;
  report.resampled += recording.source_rate_hz != rate_hz;
  report.mixed += recording.source_channels != 1;
  for (const auto& note : prepared.recording->notes) ++report.notes[note];
}

/// Too many refused: an error that names the first of them.
Result<void> check_refused(const DatasetReport& report, std::size_t kept, double limit) {
  const auto refused = report.refused.size();
  if (kept > 0 && static_cast<double>(refused) <= limit * static_cast<double>(report.found)) return {};
  std::string text = std::to_string(refused) + " of " + plural(report.found, "recording") +
                     " cannot be read (at most " + two_decimals(limit * 100) + " % may fail): ";
  for (std::size_t i = 0; i < std::min(refused, kRefusedNamed); ++i)
    text += (i ? "; " : "") + report.refused[i];
  if (refused > kRefusedNamed) text += "; and " + std::to_string(refused - kRefusedNamed) + " more";
  return Error{ErrorCode::format, text};
}

}  // namespace

Result<Dataset> Dataset::open(const DatasetOptions& options) {
  if (options.sample_rate_hz < 1)
    fail("dataset", "a sample rate of at least 1 Hz", std::to_string(options.sample_rate_hz));
  if (options.cache_folder.empty()) fail("dataset", "a cache folder", "an empty name");
  if (!(options.refused_limit >= 0 && options.refused_limit <= 1))
    fail("dataset", "a refused_limit from 0 to 1", std::to_string(options.refused_limit));
  if (options.threads < 0) fail("dataset", "threads >= 0", std::to_string(options.threads));

  auto sources = find_sources(options.sources);
  if (!sources) return sources.error();
  std::error_code error;
  std::filesystem::create_directories(options.cache_folder, error);
  if (error)
    return Error{ErrorCode::io,
                 "cannot make the cache folder " + options.cache_folder + ": " + error.message()};
  try {
    const auto prepared = prepare_all(sources->files, options);
    Dataset set;
    set.sample_rate_hz_ = options.sample_rate_hz;
    DatasetReport& report = set.report_;
    report.found = static_cast<std::int64_t>(sources->files.size());
    report.excluded = sources->excluded;
    report.repeated = sources->repeated;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < prepared.size(); ++i) {
      const SourceFile& file = sources->files[i];
      if (!prepared[i].recording) {
        report.refused.push_back(file.name + ": " + prepared[i].reason);
        continue;
      }
      set.recordings_.push_back(recording_of(file, prepared[i]));
      const Recording& added = set.recordings_.back();
      count(added, prepared[i], options.sample_rate_hz, report);
      set.samples_ += added.samples;
      bytes += added.bytes();
    }
    if (auto checked = check_refused(report, set.recordings_.size(), options.refused_limit); !checked)
      return checked.error();
    if (bytes <= options.memory_limit_bytes) set.load();
    set.describe();
    return set;
  } catch (const ResultError& trouble) {
    return trouble.error();
  }
}

void Dataset::load() {
  memory_.reserve(recordings_.size());
  for (const auto& recording : recordings_) {
    const MappedFile file = MappedFile::open(recording.cache).value();
    const auto size = static_cast<std::size_t>(recording.bytes());
    if (file.bytes().size() < kCacheHeaderBytes + size)
      throw ResultError({ErrorCode::damaged, "the cache file " + recording.cache + " was cut off meanwhile"});
    const auto samples = file.bytes().subspan(kCacheHeaderBytes, size);
    memory_.emplace_back(samples.begin(), samples.end());
  }
}

void Dataset::describe() {
  std::string identity = std::to_string(sample_rate_hz_);
  for (const auto& recording : recordings_)
    identity += '\n' + recording.relative + '\n' + std::to_string(recording.samples);
  fingerprint_ = content_hash(std::as_bytes(std::span(identity)));
  std::size_t shortest = 0, longest = 0;
  for (std::size_t i = 0; i < recordings_.size(); ++i) {
    if (recordings_[i].samples < recordings_[shortest].samples) shortest = i;
    if (recordings_[i].samples > recordings_[longest].samples) longest = i;
  }
  const auto seconds = [this](std::int64_t samples) {
    return static_cast<double>(samples) / sample_rate_hz_;
  };
  report_.summary = plural(static_cast<std::int64_t>(recordings_.size()), "recording") + " of " +
                    two_decimals(seconds(recordings_[shortest].samples)) + " to " +
                    two_decimals(seconds(recordings_[longest].samples)) + " s, " +
                    two_decimals(seconds(samples_) / 3600) + " h at " + std::to_string(sample_rate_hz_) +
                    " Hz, " + (in_memory() ? "in memory" : "mapped") + ", fingerprint " + hex(fingerprint_);
}

void Dataset::read(std::int64_t recording, std::int64_t begin, std::span<float> out) const {
  if (recording < 0 || recording >= static_cast<std::int64_t>(recordings_.size()))
    fail("dataset", "a recording below " + std::to_string(recordings_.size()), std::to_string(recording));
  const auto at = static_cast<std::size_t>(recording);
  const Recording& entry = recordings_[at];
  const auto count = static_cast<std::int64_t>(out.size());
  if (begin < 0 || begin > entry.samples || count > entry.samples - begin)
    fail("dataset", "a place within the " + std::to_string(entry.samples) + " samples of " + entry.name,
         std::to_string(count) + " samples from " + std::to_string(begin));
  if (in_memory()) return read_samples(memory_[at], entry.pcm16, begin, out);
  const auto file = MappedFile::open(entry.cache);
  if (!file) throw ResultError({file.error().code, entry.name + ": " + file.error().message});
  const auto size = static_cast<std::size_t>(entry.bytes());
  if (file->bytes().size() < kCacheHeaderBytes + size)
    throw ResultError({ErrorCode::damaged, entry.name + ": its cache file " + entry.cache +
                                               " is shorter than it was at the start"});
  read_samples(file->bytes().subspan(kCacheHeaderBytes, size), entry.pcm16, begin, out);
}

std::vector<std::string> DatasetReport::lines() const {
  std::vector<std::string> lines = {summary};
  lines.push_back(
      std::to_string(decoded) + " decoded, " + std::to_string(cached) + " from the cache" +
      (rebuilt ? " (" + std::to_string(rebuilt) + " decoded again: damaged there)" : std::string()));
  if (excluded) lines.push_back(plural(excluded, "recording") + " excluded by patterns");
  if (repeated) lines.push_back(plural(repeated, "recording") + " named more than once, taken once");
  if (resampled) lines.push_back(plural(resampled, "recording") + " resampled");
  if (mixed) lines.push_back(plural(mixed, "recording") + " mixed to mono");
  for (const auto& [note, count] : notes) lines.push_back(plural(count, "recording") + ": " + note);
  for (std::size_t i = 0; i < std::min(refused.size(), kRefusedShown); ++i)
    lines.push_back("refused " + refused[i]);
  if (refused.size() > kRefusedShown)
    lines.push_back("refused " + std::to_string(refused.size() - kRefusedShown) + " more");
  return lines;
}

}  // namespace tessera::train
