#include "apps/bench/cost.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/bench/latency.h"
#include "apps/bench/measurement.h"
#include "apps/bench/recordings.h"

namespace tessera::bench {
namespace {

// Raised whenever something is measured in another way than before.
constexpr int kCostVersion = 1;

}  // namespace

Result<Speed> measure_speed(const CodecRunner& runner, const OperatingPoint& point,
                            const std::vector<std::string>& recordings, int repeats) {
  double seconds = 0, encode_s = 0, decode_s = 0;
  for (const std::string& path : recordings) {
    const auto sound = read_recording(path);
    if (!sound) return sound.error();
    double best_encode_s = std::numeric_limits<double>::max(), best_decode_s = best_encode_s;
    for (int i = 0; i < std::max(repeats, 1); ++i) {
      const auto coded = run_codec(runner, point, sound->pcm, sound->sample_rate_hz, {});
      if (!coded) return coded.error();
      best_encode_s = std::min(best_encode_s, coded->encode_s);
      best_decode_s = std::min(best_decode_s, coded->decode_s);
    }
    seconds += static_cast<double>(sound->pcm.size()) / sound->sample_rate_hz;
    encode_s += best_encode_s;
    decode_s += best_decode_s;
  }
  Speed speed;
  speed.encode = encode_s > 0 ? seconds / encode_s : -1;
  speed.decode = decode_s > 0 ? seconds / decode_s : -1;
  return speed;
}

std::int64_t median_delay(const std::vector<ResultRow>& rows, const SeriesKey& key) {
  std::vector<std::int64_t> delays;
  for (const ResultRow& row : rows) {
    if (row.codec == key.codec && row.point == key.point && row.loss_rate == 0 && row.file_bytes > 0) {
      delays.push_back(row.delay_samples);
    }
  }
  if (delays.empty()) return 0;
  std::sort(delays.begin(), delays.end());
  return delays[delays.size() / 2];
}

Result<CostOutcome> measure_cost(const CodecRunner& runner, const OperatingPoint& point,
                                 const std::string& spec, std::int64_t delay_samples, ProcessProbe& probe,
                                 const CostOptions& options) {
  if (options.recordings.empty())
    return Error{ErrorCode::usage, "expected recordings to measure cost, got none"};
  const auto sound = read_recording(options.recordings.front());
  if (!sound) return sound.error();
  CostOutcome outcome;
  CodecCost& cost = outcome.cost;
  cost.codec = runner.name();
  cost.point = point.name;
  cost.encode_real_time = cost.decode_real_time = cost.peak_memory_mib = cost.latency_ms = cost.start_up_ms =
      -1;
  const auto note = [&](const Error& error) {
    outcome.notes.push_back(runner.name() + ", " + point.name + ": " + error.message);
  };
  if (const auto speed = measure_speed(runner, point, options.recordings, options.repeats)) {
    cost.encode_real_time = speed->encode;
    cost.decode_real_time = speed->decode;
  } else {
    note(speed.error());
  }
  if (const auto usage = probe.measure(spec, point.name, options.recordings.front())) {
    cost.peak_memory_mib = usage->peak_memory_mib;
    cost.start_up_ms = usage->start_up_ms;
  } else {
    note(usage.error());
  }
  const auto latency = measure_latency_ms(runner, point, sound->pcm, sound->sample_rate_hz, delay_samples);
  if (latency) {
    cost.latency_ms = *latency;
  } else {
    note(latency.error());
  }
  return outcome;
}

Result<CostOutcome> measure_cost_once(const ResultCache& cache, const CodecRunner& runner,
                                      const OperatingPoint& point, const std::string& spec,
                                      std::int64_t delay_samples, ProcessProbe& probe,
                                      const CostOptions& options, const std::string& machine) {
  using Json = nlohmann::json;
  Json words = {"cost", kCostVersion, machine,       runner.name(), runner.version(),
                spec,   point.name,   point.setting, delay_samples, options.repeats};
  for (const std::string& path : options.recordings) {
    auto hash = hash_of_file(path);
    if (!hash) return hash.error();
    words.push_back(*std::move(hash));
  }
  const std::string key = words.dump(-1, ' ', false, Json::error_handler_t::replace);
  try {
    if (const auto known = cache.find(key)) {
      CostOutcome outcome;
      outcome.cost.codec = runner.name();
      outcome.cost.point = point.name;
      known->at("encode_real_time").get_to(outcome.cost.encode_real_time);
      known->at("decode_real_time").get_to(outcome.cost.decode_real_time);
      known->at("peak_memory_mib").get_to(outcome.cost.peak_memory_mib);
      known->at("latency_ms").get_to(outcome.cost.latency_ms);
      known->at("start_up_ms").get_to(outcome.cost.start_up_ms);
      known->at("notes").get_to(outcome.notes);
      return outcome;
    }
  } catch (const Json::exception&) {
    // Not what is stored below: measured anew.
  }
  auto outcome = measure_cost(runner, point, spec, delay_samples, probe, options);
  if (!outcome) return outcome;
  const CodecCost& cost = outcome->cost;
  const Json value = {
      {"encode_real_time", cost.encode_real_time}, {"decode_real_time", cost.decode_real_time},
      {"peak_memory_mib", cost.peak_memory_mib},   {"latency_ms", cost.latency_ms},
      {"start_up_ms", cost.start_up_ms},           {"notes", outcome->notes}};
  if (const auto stored = cache.store(key, value); !stored) return stored.error();
  return outcome;
}

}  // namespace tessera::bench
