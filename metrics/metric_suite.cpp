#include "metrics/metric_suite.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "metrics/alignment.h"
#include "metrics/resample.h"
#include "metrics/signal.h"
#include "metrics/spectral_distance.h"
#include "metrics/stoi.h"
#include "metrics/waveform.h"

namespace tessera::metrics {
namespace {

// Puts a loaded model in its place, or gives the reason why there is none.
template <class Model>
std::optional<std::string> keep(Result<Model> loaded, std::optional<Model>& place) {
  if (!loaded) return loaded.error().message;
  place = *std::move(loaded);
  return std::nullopt;
}

Result<Visqol> load_visqol(VisqolMode mode, const std::string& path) {
  VisqolOptions options;
  options.mode = mode;
  options.model_path = path;
  return Visqol::load(options);
}

Result<std::vector<float>> resampled(const std::vector<float>& sound, int from_hz, int to_hz) {
  Result<std::vector<double>> y = resample(widened(sound), from_hz, to_hz);
  if (!y) return y.error();
  return std::vector<float>(y->begin(), y->end());
}

}  // namespace

/// Both sounds at one rate.
struct MetricSuite::Pair {
  std::vector<float> reference = {}, degraded = {};
  int rate_hz = 0;
};

Result<MetricSuite> MetricSuite::load(const SuiteOptions& options) {
  MetricSuite suite;
  suite.options_ = options;
  for (const std::string& name : options.metrics) {
    if (find_metric(name)) continue;
    std::string names;
    for (const MetricInfo& metric : all_metrics())
      names += (names.empty() ? "" : ", ") + std::string(metric.name);
    return Error{ErrorCode::usage, "expected metrics among " + names + ", got \"" + name + "\""};
  }
  if (!(options.max_delay_s >= 0 && options.max_delay_s <= 10)) {
    return Error{ErrorCode::usage,
                 "expected a delay of 0 to 10 s, got " + std::to_string(options.max_delay_s)};
  }
  std::map<std::string_view, std::optional<std::string>> tried;  // why a file did not load
  for (const MetricInfo& metric : all_metrics()) {
    const auto& wanted = options.metrics;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), metric.name) == wanted.end()) continue;
    std::optional<std::string> reason;
    if (!metric.file.empty() && options.model_folder.empty()) {
      reason = "needs a model folder with " + std::string(metric.file);
    } else if (const auto before = tried.find(metric.file); !metric.file.empty() && before != tried.end()) {
      reason = before->second;
    } else {
      const std::string path = options.model_folder + "/" + std::string(metric.file);
      if (metric.name == "visqol_speech") {
        reason = keep(load_visqol(VisqolMode::speech_lattice, path), suite.speech_);
      } else if (metric.name == "visqol_speech_exponential") {
        reason = keep(load_visqol(VisqolMode::speech, {}), suite.speech_exponential_);
      } else if (metric.name == "visqol_audio") {
        reason = keep(load_visqol(VisqolMode::audio, path), suite.audio_);
      } else if (metric.name.starts_with("dnsmos")) {
        reason = keep(Dnsmos::load(path), suite.dnsmos_);
      }
      tried[metric.file] = reason;
    }
    if (reason) {
      suite.unavailable_.push_back({std::string(metric.name), *reason});
    } else {
      suite.available_.push_back(&metric);
    }
  }
  return suite;
}

Result<double> MetricSuite::measure(std::string_view name, const Pair& pair,
                                    std::optional<Result<DnsmosScore>>& dnsmos, ThreadPool& pool) const {
  const auto& [reference, degraded, rate_hz] = pair;
  const auto visqol = [&](const Visqol& model) -> Result<double> {
    const Result<VisqolScore> score = model.score(pair.reference, pair.degraded, pair.rate_hz);
    if (!score) return score.error();
    return score->mos_lqo;
  };
  if (name == "visqol_speech") return visqol(*speech_);
  if (name == "visqol_speech_exponential") return visqol(*speech_exponential_);
  if (name == "visqol_audio") return visqol(*audio_);
  if (name == "stoi") return stoi(reference, degraded, rate_hz);
  if (name == "estoi") return extended_stoi(reference, degraded, rate_hz);
  if (name == "si_sdr") return si_sdr(reference, degraded, rate_hz);
  if (name == "snr") return snr(reference, degraded, rate_hz);
  if (name == "lsd") return log_spectral_distance(reference, degraded, rate_hz);
  if (name == "mel_distance") return mel_distance(reference, degraded, rate_hz);
  if (!dnsmos) dnsmos = dnsmos_->score(degraded, rate_hz, pool);  // once for its three metrics
  if (!*dnsmos) return dnsmos->error();
  const DnsmosRatings& ratings = (*dnsmos)->ratings;
  return name == "dnsmos_sig" ? ratings.signal : name == "dnsmos_bak" ? ratings.background : ratings.overall;
}

Result<Report> MetricSuite::compute(std::span<const float> reference, std::span<const float> degraded,
                                    int sample_rate_hz, ThreadPool& pool) const {
  if (auto good = check_pair(reference, degraded, sample_rate_hz, false); !good) return good.error();
  Report report;
  report.unscored = unavailable_;
  const auto max_delay = static_cast<std::int64_t>(std::llround(options_.max_delay_s * sample_rate_hz));
  if (max_delay > 0) report.delay_samples = find_delay(reference, degraded, max_delay).samples;
  if (report.delay_samples != 0) {
    report.notes.push_back("degraded sound shifted by " + std::to_string(-report.delay_samples) + " samples");
  }
  AlignedPair aligned = align(reference, degraded, report.delay_samples);
  if (aligned.reference.empty()) {
    return Error{ErrorCode::format, "the sounds do not overlap after a shift by " +
                                        std::to_string(-report.delay_samples) + " samples"};
  }
  if (aligned.reference.size() != reference.size() || aligned.degraded.size() != degraded.size()) {
    report.notes.push_back("compared " + std::to_string(aligned.reference.size()) + " samples of " +
                           std::to_string(reference.size()) + " of reference and " +
                           std::to_string(degraded.size()) + " of degraded sound");
  }
  std::map<int, Result<Pair>> pairs;
  const auto at_rate = [&](int rate_hz) -> const Result<Pair>& {
    const auto found = pairs.find(rate_hz);
    if (found != pairs.end()) return found->second;
    if (rate_hz == sample_rate_hz) {
      Pair pair;
      pair.reference = aligned.reference;
      pair.degraded = aligned.degraded;
      pair.rate_hz = rate_hz;
      return pairs.emplace(rate_hz, std::move(pair)).first->second;
    }
    auto clean = resampled(aligned.reference, sample_rate_hz, rate_hz);
    auto decoded = resampled(aligned.degraded, sample_rate_hz, rate_hz);
    if (!clean) return pairs.emplace(rate_hz, clean.error()).first->second;
    if (!decoded) return pairs.emplace(rate_hz, decoded.error()).first->second;
    Pair pair;
    pair.reference = *std::move(clean);
    pair.degraded = *std::move(decoded);
    pair.rate_hz = rate_hz;
    return pairs.emplace(rate_hz, std::move(pair)).first->second;
  };
  std::optional<Result<DnsmosScore>> dnsmos;
  for (const MetricInfo* metric : available_) {
    const int rate_hz = metric->rate_hz ? metric->rate_hz : sample_rate_hz;
    const Result<Pair>& pair = at_rate(rate_hz);
    const Result<double> value =
        pair ? measure(metric->name, *pair, dnsmos, pool) : Result<double>(pair.error());
    if (!value) {
      report.unscored.push_back({std::string(metric->name), value.error().message});
      continue;
    }
    report.scores.push_back({std::string(metric->name), *value});
    if (rate_hz != sample_rate_hz) {
      report.notes.push_back(std::string(metric->name) + ": resampled from " +
                             std::to_string(sample_rate_hz) + " to " + std::to_string(rate_hz) + " Hz");
    }
  }
  return report;
}

}  // namespace tessera::metrics
