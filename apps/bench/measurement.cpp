#include "apps/bench/measurement.h"

#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "apps/bench/recordings.h"
#include "core/thread_pool.h"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

// Raised whenever a metric gives another number for the same sounds than before.
constexpr const char* kMetricsVersion = "1";

}  // namespace

Result<MetricVersions> metric_versions(const metrics::MetricSuite& suite, const std::string& model_folder) {
  MetricVersions versions;
  for (const metrics::MetricInfo* metric : suite.available()) {
    std::string version = kMetricsVersion;
    if (!metric->file.empty()) {
      const auto hash = hash_of_file(model_folder + "/" + std::string(metric->file));
      if (!hash) return hash.error();
      version += "-" + *hash;
    }
    if (const std::string hash = suite.built_in_hash(metric->name); !hash.empty()) version += "-" + hash;
    versions.emplace(metric->name, std::move(version));
  }
  return versions;
}

MetricVersions versions_for(const std::string& recording, const MetricVersions& versions,
                            const metrics::MetricSuite& suite) {
  MetricVersions own;
  for (const auto& [name, version] : versions) {
    if (!suite.covers(name, recording)) continue;
    const std::string hash = suite.known_hash(name, recording);
    own[name] = hash.empty() ? version : version + "-" + hash;
  }
  return own;
}

bool Measurement::covers(const MetricVersions& versions) const {
  for (const auto& [name, version] : versions) {
    const auto found = scores.find(name);
    if (found == scores.end() || found->second.version != version) return false;
  }
  return true;
}

std::string cache_key(const std::string& recording_hash, const CodecRunner& runner,
                      const OperatingPoint& point, const LossOptions& loss) {
  Json key = {recording_hash, runner.name(), runner.version(), point.name, point.setting};
  if (loss.rate > 0) key.push_back({loss.rate, loss.mean_burst, loss.seed});
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Measurement& measurement) {
  Json scores = Json::object();
  for (const auto& [name, score] : measurement.scores) {
    Json& place = scores[name];
    place["version"] = score.version;
    if (score.error.empty()) {
      place["value"] = score.value;
    } else {
      place["error"] = score.error;
    }
  }
  return {{"seconds", measurement.seconds},
          {"file_bytes", measurement.file_bytes},
          {"payload_bytes", measurement.payload_bytes},
          {"encode_s", measurement.encode_s},
          {"decode_s", measurement.decode_s},
          {"delay_samples", measurement.delay_samples},
          {"scores", std::move(scores)}};
}

std::optional<Measurement> measurement_from(const Json& object) {
  try {
    Measurement measurement;
    object.at("seconds").get_to(measurement.seconds);
    object.at("file_bytes").get_to(measurement.file_bytes);
    object.at("payload_bytes").get_to(measurement.payload_bytes);
    object.at("encode_s").get_to(measurement.encode_s);
    object.at("decode_s").get_to(measurement.decode_s);
    object.at("delay_samples").get_to(measurement.delay_samples);
    for (const auto& [name, stored] : object.at("scores").items()) {
      CachedScore& score = measurement.scores[name];
      stored.at("version").get_to(score.version);
      if (stored.contains("error")) {
        stored.at("error").get_to(score.error);
      } else {
        stored.at("value").get_to(score.value);
      }
    }
    return measurement;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Result<CodedSound> run_codec(const CodecRunner& runner, const OperatingPoint& point,
                             std::span<const float> pcm, int sample_rate_hz, const LossOptions& loss) {
  try {
    auto coded = runner.run(point, pcm, sample_rate_hz, loss);
    if (!coded) return coded;
    if (coded->sample_rate_hz == sample_rate_hz) return coded;
    return Error{ErrorCode::mismatch, runner.name() + ": expected sound at " +
                                          std::to_string(sample_rate_hz) + " Hz as it went in, got " +
                                          std::to_string(coded->sample_rate_hz)};
  } catch (const std::exception& error) {
    return Error{ErrorCode::unsupported, runner.name() + ": " + error.what()};
  }
}

Measurement measure(const CodedSound& coded, std::span<const float> reference, int sample_rate_hz,
                    const metrics::MetricSuite& suite, const MetricVersions& versions,
                    const std::string& recording) {
  Measurement result;
  result.seconds = static_cast<double>(reference.size()) / sample_rate_hz;
  result.file_bytes = coded.file_bytes;
  result.payload_bytes = coded.payload_bytes;
  result.encode_s = coded.encode_s;
  result.decode_s = coded.decode_s;
  for (const auto& [name, version] : versions) {
    CachedScore& score = result.scores[name];
    score.version = version;
    score.error = "not computed";
  }
  ThreadPool pool(1);
  const auto report = suite.compute(reference, coded.pcm, sample_rate_hz, pool, recording);
  if (!report) {
    for (auto& [name, score] : result.scores) score.error = report.error().message;
    return result;
  }
  result.delay_samples = report->delay_samples;
  for (const metrics::Score& score : report->scores) {
    CachedScore& place = result.scores[score.name];
    place.value = score.value;
    place.error = std::isfinite(score.value) ? "" : "the score is not a number";
  }
  for (const metrics::Unscored& metric : report->unscored) {
    if (const auto place = result.scores.find(metric.name); place != result.scores.end()) {
      place->second.error = metric.reason;
    }
  }
  return result;
}

}  // namespace tessera::bench
