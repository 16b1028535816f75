#include "apps/bench/plan.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "apps/bench/runners.h"

namespace tessera::bench {
namespace {

// Not visqol_audio, which needs sound of full bandwidth, nor the older mapping of visqol_speech.
constexpr std::array<std::string_view, 11> kSpeechMetrics{
    "visqol_speech", "stoi",       "estoi",      "si_sdr",     "snr",        "lsd",
    "mel_distance",  "dnsmos_sig", "dnsmos_bak", "dnsmos_ovr", "phone_error"};
constexpr std::array<const char*, 4> kUsualCodecs{"tessera", "opus", "codec2", "speex"};

bool fits(const std::string& pattern, const CodecRunner& runner, const OperatingPoint& point) {
  const std::string whole = runner.name() + "/" + point.name;
  return fnmatch(pattern.c_str(), whole.c_str(), 0) == 0 ||
         fnmatch(pattern.c_str(), point.name.c_str(), 0) == 0;
}

}  // namespace

Result<std::vector<PlannedCodec>> plan_codecs(const std::vector<std::string>& specs,
                                              std::vector<LeftOut>& left_out) {
  std::vector<std::string> wanted = specs;
  if (wanted.empty()) {
    const std::vector<CodecChoice> choices = codec_choices();
    for (const char* name : kUsualCodecs) {
      const auto choice =
          std::find_if(choices.begin(), choices.end(), [&](const auto& one) { return one.name == name; });
      if (choice == choices.end()) continue;
      if (choice->absence.empty()) {
        wanted.emplace_back(name);
      } else {
        left_out.push_back({name, choice->absence});
      }
    }
  }
  std::vector<PlannedCodec> codecs;
  for (const std::string& spec : wanted) {
    auto runner = make_runner(spec);
    if (!runner) return runner.error();
    for (const PlannedCodec& other : codecs) {
      if (other.runner->name() != (*runner)->name()) continue;
      return Error{ErrorCode::usage, "expected codecs of different names (NAME=" + spec +
                                         " gives another), got " + other.runner->name() + " twice"};
    }
    PlannedCodec& codec = codecs.emplace_back();
    codec.spec = spec;
    codec.runner = *std::move(runner);
  }
  return codecs;
}

Result<std::vector<Series>> plan_series(const std::vector<PlannedCodec>& codecs,
                                        const std::vector<std::string>& patterns,
                                        const std::vector<LossOptions>& losses,
                                        std::vector<LeftOut>& left_out) {
  std::vector<Series> series;
  std::vector<bool> used(patterns.size());
  std::string all;
  for (const PlannedCodec& codec : codecs) {
    for (OperatingPoint& point : codec.runner->points()) {
      all += (all.empty() ? "" : ", ") + codec.runner->name() + "/" + point.name;
      bool wanted = patterns.empty();
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (!fits(patterns[i], *codec.runner, point)) continue;
        wanted = used[i] = true;
      }
      if (!wanted) continue;
      Series& one = series.emplace_back();
      one.runner = codec.runner.get();
      one.point = std::move(point);
    }
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (used[i]) continue;
    return Error{ErrorCode::usage,
                 "expected patterns of operating points among " + all + ", got " + patterns[i]};
  }
  const std::size_t clean = series.size();
  for (const LossOptions& loss : losses) {
    for (std::size_t i = 0; i < clean; ++i) {
      if (!series[i].runner->conceals()) continue;
      Series one = series[i];
      one.loss = loss;
      series.push_back(std::move(one));
    }
  }
  for (const PlannedCodec& codec : codecs) {
    if (losses.empty() || codec.runner->conceals()) continue;
    left_out.push_back({codec.runner->name() + " with losses", "it does not conceal them"});
  }
  return series;
}

Result<metrics::MetricSuite> plan_metrics(const std::vector<std::string>& names,
                                          const std::string& model_folder,
                                          const std::vector<std::string>& alignments,
                                          std::vector<LeftOut>& left_out) {
  metrics::SuiteOptions options;
  options.model_folder = model_folder;
  if (!alignments.empty()) {
    auto read = metrics::PhoneAlignments::read(alignments);
    if (!read) return read.error();
    options.alignments = *std::move(read);
  }
  const bool all = names.size() == 1 && names.front() == "all";
  if (names.empty()) {
    options.metrics.assign(kSpeechMetrics.begin(), kSpeechMetrics.end());
  } else if (!all) {
    options.metrics = names;
  }
  auto suite = metrics::MetricSuite::load(options);
  if (!suite) return suite;
  for (const metrics::Unscored& metric : suite->unavailable()) {
    if (!names.empty() && !all) {
      return Error{ErrorCode::usage, "metric " + metric.name + ": " + metric.reason};
    }
    left_out.push_back({metric.name, metric.reason});
  }
  return suite;
}

Result<std::vector<std::string>> uncovered(const metrics::MetricSuite& suite,
                                           const std::vector<Recording>& recordings) {
  std::vector<std::string> notes;
  for (const metrics::MetricInfo* metric : suite.available()) {
    const auto covered = static_cast<std::size_t>(std::count_if(
        recordings.begin(), recordings.end(),
        [&](const Recording& recording) { return suite.covers(metric->name, recording.name); }));
    const std::string name(metric->name), all = std::to_string(recordings.size());
    if (covered == 0) {
      return Error{ErrorCode::usage, name + ": expected alignments of the recordings, got none for " + all};
    }
    if (covered < recordings.size()) {
      notes.push_back(name + ": " + std::to_string(covered) + " of " + all + " recordings have an alignment");
    }
  }
  return notes;
}

}  // namespace tessera::bench
