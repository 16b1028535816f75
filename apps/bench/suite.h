// The run: every recording through every codec at every point, scored by every metric. Recordings are shared
// among threads, each job runs on one; what was measured before comes from the cache; a codec or metric that
// fails costs its row and no other. Times in the rows are taken under this load: cost.h measures them apart.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "apps/bench/measurement.h"
#include "apps/bench/recordings.h"
#include "apps/bench/result.h"
#include "core/result.h"
#include "metrics/metric_suite.h"

namespace tessera::bench {

/// A codec at one of its points. The runner must outlive the run.
struct Series {
  const CodecRunner* runner = nullptr;
  OperatingPoint point = {};
  LossOptions loss = {};
};

struct RunOptions {
  std::string folder = {};  ///< gets cache/ and examples/
  int threads = 0;          ///< 0: all cores. Any number gives the same scores
  int examples = 0;  ///< recordings, taken evenly from all, whose decoded sounds (without loss) are kept
  std::function<bool()> stop = {};  ///< asked before each job; from any thread
  /// Seconds of sound that went through a codec since the start, and in all; one call at a time.
  std::function<void(double done_s, double total_s)> progress = {};
};

struct RunOutcome {
  std::vector<ResultRow> rows = {};  ///< by recording, then series, in the order given
  std::vector<Example> examples = {};
  std::int64_t computed = 0, from_cache = 0;
  std::int64_t failed = 0;              ///< rows with an error
  std::string data_hash = {};           ///< of names and contents of all recordings
  bool stopped = false;                 ///< rows that were not reached are left out
  std::vector<std::string> notes = {};  ///< what was done to recordings: "mixed to mono", with the count
};

/// Errors: io (the cache or an example cannot be written), usage (no recording, no series, the same codec,
/// point and loss twice).
Result<RunOutcome> run_suite(const std::vector<Recording>& recordings, const std::vector<Series>& series,
                             const metrics::MetricSuite& suite, const MetricVersions& versions,
                             const RunOptions& options);

}  // namespace tessera::bench
