#include "metrics/metric_suite.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "metrics/alignment.h"
#include "metrics/phone_error.h"
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
  std::vector<std::int32_t> phones = {};  // of each 10 ms
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
    if (metric.name == "phone_error") {
      if (!options.alignments) {
        reason = "needs phone alignments";
      } else if (auto error = suite.load_phones()) {
        return *std::move(error);
      }
    } else if (!metric.file.empty() && options.model_folder.empty()) {
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

std::optional<Error> MetricSuite::load_phones() {
  if (auto failure = keep(PhoneClassifier::builtin(), phones_)) return Error{ErrorCode::format, *failure};
  const std::vector<std::string>& known = phones_->phones();
  for (const std::string& phone : options_.alignments->phones()) {
    const auto found = std::find(known.begin(), known.end(), phone);
    if (found == known.end()) {
      std::string names;
      for (std::size_t i = 1; i < known.size(); ++i) names += (i > 1 ? " " : "") + known[i];
      return Error{ErrorCode::mismatch,
                   "phone_error: expected alignments of the phones " + names + ", got \"" + phone + "\""};
    }
    phone_classes_.push_back(static_cast<std::int32_t>(found - known.begin()));
  }
  return std::nullopt;
}

// Classes of the frames of [begin_s, begin_s + length_s) of a recording with an alignment.
std::vector<std::int32_t> MetricSuite::phones_of(const std::string& recording, double begin_s,
                                                 double length_s) const {
  const double rate_hz = PhoneAlignments::kFrameRateHz, begin = begin_s * rate_hz;
  const auto frames = static_cast<std::int64_t>(length_s * rate_hz + 1e-6);
  const auto all =
      options_.alignments->labels(recording, frames + static_cast<std::int64_t>(begin) + 1, rate_hz);
  std::vector<std::int32_t> classes;
  for (std::int64_t i = 0; all && i < frames; ++i) {
    const std::int32_t label = (*all)[static_cast<std::size_t>(static_cast<double>(i) + 0.5 + begin)];
    classes.push_back(label < 0 ? label : phone_classes_[static_cast<std::size_t>(label)]);
  }
  return classes;
}

bool MetricSuite::covers(std::string_view metric, const std::string& recording) const {
  return metric != "phone_error" || (options_.alignments && options_.alignments->contains(recording));
}

std::string MetricSuite::built_in_hash(std::string_view metric) const {
  return metric == "phone_error" && phones_ ? phones_->hash() : "";
}

std::string MetricSuite::known_hash(std::string_view metric, const std::string& recording) const {
  return metric == "phone_error" && options_.alignments ? options_.alignments->hash(recording) : "";
}

Result<double> MetricSuite::measure(std::string_view name, const Pair& pair,
                                    std::optional<Result<DnsmosScore>>& dnsmos, ThreadPool& pool) const {
  const auto& [reference, degraded, rate_hz, phones] = pair;
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
  if (name == "phone_error") return phone_error(*phones_, degraded, rate_hz, phones, pool);
  if (!dnsmos) dnsmos = dnsmos_->score(degraded, rate_hz, pool);  // once for its three metrics
  if (!*dnsmos) return dnsmos->error();
  const DnsmosRatings& ratings = (*dnsmos)->ratings;
  return name == "dnsmos_sig" ? ratings.signal : name == "dnsmos_bak" ? ratings.background : ratings.overall;
}

Result<Report> MetricSuite::compute(std::span<const float> reference, std::span<const float> degraded,
                                    int sample_rate_hz, ThreadPool& pool,
                                    const std::string& recording) const {
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
  const auto seconds = [&](std::int64_t samples) { return static_cast<double>(samples) / sample_rate_hz; };
  std::vector<std::int32_t> phones;
  if (phones_ && covers("phone_error", recording)) {
    phones = phones_of(recording, seconds(std::max<std::int64_t>(-report.delay_samples, 0)),
                       seconds(static_cast<std::int64_t>(aligned.reference.size())));
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
      pair.phones = phones;
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
    pair.phones = phones;
    return pairs.emplace(rate_hz, std::move(pair)).first->second;
  };
  std::optional<Result<DnsmosScore>> dnsmos;
  for (const MetricInfo* metric : available_) {
    if (!covers(metric->name, recording)) {
      report.unscored.push_back({std::string(metric->name), "no phone alignment of \"" + recording + "\""});
      continue;
    }
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
