// One recording through one codec at one point, measured; and the same as the cache keeps it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "apps/bench/codec_runner.h"
#include "apps/bench/result.h"
#include "metrics/metric_suite.h"

namespace tessera::bench {

/// By metric; a score counts only under the version it was made with.
using MetricVersions = std::map<std::string, std::string>;

/// Of the metrics that are available: a number that is raised when the arithmetic of metrics/ changes, with
/// the hash of the model where there is one. Error: a model file that cannot be read.
Result<MetricVersions> metric_versions(const metrics::MetricSuite& suite, const std::string& model_folder);
/// Those that count for one recording: without metrics that do not cover it, and with the hash of its
/// alignment.
MetricVersions versions_for(const std::string& recording, const MetricVersions& versions,
                            const metrics::MetricSuite& suite);

struct CachedScore {
  std::string version = {};
  double value = 0;
  std::string error = {};  ///< why there is no value
};

struct Measurement {
  double seconds = 0;
  std::int64_t file_bytes = 0, payload_bytes = -1;
  double encode_s = 0, decode_s = 0;
  std::int64_t delay_samples = 0;
  std::map<std::string, CachedScore> scores = {};  ///< by metric

  /// Whether there is a score, or a reason why not, for each of them.
  bool covers(const MetricVersions& versions) const;
};

/// Names all that a result depends on apart from the metrics.
std::string cache_key(const std::string& recording_hash, const CodecRunner& runner,
                      const OperatingPoint& point, const LossOptions& loss);

nlohmann::json to_json(const Measurement& measurement);
/// None for anything that to_json() does not give.
std::optional<Measurement> measurement_from(const nlohmann::json& object);

/// The codec's sound, at the rate that went in. Errors: the codec's; mismatch for another rate; whatever a
/// codec throws.
Result<CodedSound> run_codec(const CodecRunner& runner, const OperatingPoint& point,
                             std::span<const float> pcm, int sample_rate_hz, const LossOptions& loss);

/// Scores the decoded sound. The delay is found and taken out, the lengths made equal, levels and signs stay
/// (metrics/alignment.h). Metrics that cannot judge have an error in their place; so have all when the sounds
/// cannot be compared. `recording` names the one that was coded, for metrics that know something of it.
Measurement measure(const CodedSound& coded, std::span<const float> reference, int sample_rate_hz,
                    const metrics::MetricSuite& suite, const MetricVersions& versions,
                    const std::string& recording = {});

}  // namespace tessera::bench
