// Training recordings: found (sources.h), decoded once into a cache (cache.h), then read at any place by any
// thread. Everything that was done to them is in the report. A dataset is immutable; the order of its
// recordings, and with it every crop that is drawn, depends on the sources alone. Left out: stereo, text or
// labels that belong to a recording, sources that grow while they are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/data/sources.h"

namespace tessera::train {

struct DatasetOptions {
  SourceOptions sources = {};
  int sample_rate_hz = 0;         ///< the model's; required
  std::string cache_folder = {};  ///< made when missing; several datasets and runs may share it; required
  bool verify_cache = true;       ///< read every cache file whole at the start and check its hash
  /// PCM of the whole set up to which it is held in memory; a larger one is mapped, recording by recording,
  /// for the time of a read.
  std::int64_t memory_limit_bytes = std::int64_t{2} << 30;
  double refused_limit = 0.01;  ///< share of the recordings that may turn out unreadable
  int threads = 0;              ///< that decode; 0 takes the number of cores
  /// Told after each recording: how many are done, of how many, and which it was. Calls come from any thread,
  /// one at a time.
  std::function<void(std::int64_t done, std::int64_t total, const std::string& name)> progress = {};
};

struct Recording {
  std::string name;          ///< for messages: "train/a/x.flac"
  std::string relative;      ///< below its source
  std::string path;          ///< of the source file
  std::string cache;         ///< path of the cache file
  std::int64_t samples = 0;  ///< at the dataset's rate, at least 1
  bool pcm16 = false;        ///< how the cache stores it
  int source_rate_hz = 0;    ///< before resampling
  int source_channels = 0;   ///< before mixing

  /// Of its samples in the cache.
  std::int64_t bytes() const { return samples * (pcm16 ? 2 : 4); }
};

/// What happened on the way from the sources to the dataset.
struct DatasetReport {
  std::int64_t found = 0, excluded = 0, repeated = 0;  ///< recordings in the sources; left out; named twice
  std::int64_t decoded = 0, cached = 0;                ///< of those kept: anew, taken from the cache
  std::int64_t rebuilt = 0;                            ///< of those decoded: damaged in the cache
  std::int64_t resampled = 0, mixed = 0;  ///< of those kept: from another rate, from several channels
  std::map<std::string, std::int64_t> notes = {};  ///< what else was done to the sound -> recordings
  std::vector<std::string> refused = {};           ///< "name: reason", in order
  std::string summary = {};                        ///< "812 recordings, 3.40 h at 24000 Hz, ..."

  /// For a person: the summary, what was done, why recordings were refused.
  std::vector<std::string> lines() const;
};

class Dataset {
 public:
  /// Errors: those of find_sources; io (the cache cannot be written); format (more recordings than the limit
  /// cannot be read, or none can: names them). Throws UsageError for options that cannot work.
  static Result<Dataset> open(const DatasetOptions& options);

  int sample_rate_hz() const { return sample_rate_hz_; }
  const std::vector<Recording>& recordings() const { return recordings_; }
  /// Samples of all recordings together.
  std::int64_t samples() const { return samples_; }
  bool in_memory() const { return !memory_.empty(); }
  const DatasetReport& report() const { return report_; }

  /// Hash over the rate and, in order, each recording's path below its source and its count of samples: the
  /// same on every machine that has the same data, whatever folder it lies in.
  std::uint64_t fingerprint() const { return fingerprint_; }

  /// Samples [begin, begin + out.size()) of a recording, nominal range [-1, 1]. From any thread. Throws
  /// UsageError for a place outside it, ResultError (io, damaged) when its cache file has gone or changed.
  void read(std::int64_t recording, std::int64_t begin, std::span<float> out) const;

 private:
  Dataset() = default;
  void load();
  void describe();

  int sample_rate_hz_ = 0;
  std::vector<Recording> recordings_;
  std::int64_t samples_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::vector<std::vector<std::byte>> memory_;  // samples as the cache has them; empty when mapped
  DatasetReport report_;
};

}  // namespace tessera::train
