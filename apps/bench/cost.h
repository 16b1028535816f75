// What a codec costs, measured alone on an otherwise idle machine: speed on one thread, memory, latency, time
// to start. Speed is the best of several runs, since everything else on a machine only makes a run slower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "apps/bench/process_probe.h"
#include "apps/bench/result.h"
#include "apps/bench/result_cache.h"
#include "core/result.h"

namespace tessera::bench {

struct CostOptions {
  std::vector<std::string> recordings = {};  ///< paths; a few seconds each are enough
  int repeats = 3;
};

struct CostOutcome {
  CodecCost cost = {};                  ///< -1 for what could not be measured
  std::vector<std::string> notes = {};  ///< why not
};

/// `spec` is what the probe makes this runner from; `delay_samples` that of the decoded sound, at the rate of
/// the recordings (median_delay()). Error: a recording that cannot be read.
Result<CostOutcome> measure_cost(const CodecRunner& runner, const OperatingPoint& point,
                                 const std::string& spec, std::int64_t delay_samples, ProcessProbe& probe,
                                 const CostOptions& options);

/// The same, from the cache where it was measured on this machine before.
Result<CostOutcome> measure_cost_once(const ResultCache& cache, const CodecRunner& runner,
                                      const OperatingPoint& point, const std::string& spec,
                                      std::int64_t delay_samples, ProcessProbe& probe,
                                      const CostOptions& options, const std::string& machine);

/// Seconds of sound per second of encoding and of decoding: over all sounds, each in its best time of
/// `repeats`. Errors: the codec's.
struct Speed {
  double encode = 0, decode = 0;
};
Result<Speed> measure_speed(const CodecRunner& runner, const OperatingPoint& point,
                            const std::vector<std::string>& recordings, int repeats);

/// The middle one of the delays found in the rows of a series; 0 without rows.
std::int64_t median_delay(const std::vector<ResultRow>& rows, const SeriesKey& key);

}  // namespace tessera::bench
