// All metrics behind one call: which are asked for, which model files there are, alignment and rates, and
// every score of a pair of sounds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "metrics/dnsmos.h"
#include "metrics/metric.h"
#include "metrics/phone_alignment.h"
#include "metrics/phone_classifier.h"
#include "metrics/visqol.h"

namespace tessera::metrics {

struct SuiteOptions {
  std::vector<std::string> metrics = {};           ///< names; empty: every metric
  std::string model_folder = {};                   ///< holds visqol/ and dnsmos/; empty: no models
  std::optional<PhoneAlignments> alignments = {};  ///< what phone_error needs
  double max_delay_s = 0.1;  ///< the degraded sound is aligned within this first; 0: taken as it is
};

/// A metric without a score, and why.
struct Unscored {
  std::string name = {};
  std::string reason = {};
};

struct Report {
  std::vector<Score> scores = {};  ///< in the order of all_metrics()
  std::vector<Unscored> unscored = {};
  std::vector<std::string> notes = {};  ///< one line for everything that was done to the sounds
  std::int64_t delay_samples = 0;       ///< by which the degraded sound came late
};

/// Immutable: for any number of threads, each with its own pool.
class MetricSuite {
 public:
  /// Loads what the metrics need. A file that is missing or damaged makes its metrics unavailable. Error
  /// (usage): a name that no metric has; a max_delay_s outside 0 to 10; (mismatch) alignments with a phone
  /// that the classifier of phone_error does not know.
  static Result<MetricSuite> load(const SuiteOptions& options);

  /// Asked for, with the reason why each cannot be had.
  const std::vector<Unscored>& unavailable() const { return unavailable_; }
  /// Asked for and there.
  const std::vector<const MetricInfo*>& available() const { return available_; }
  /// Whether it can be had for this recording: phone_error asks for an alignment of it.
  bool covers(std::string_view metric, const std::string& recording) const;
  /// Hash of the weights that are linked in for it, and of what it knows of the recording apart from its
  /// sound; empty: nothing.
  std::string built_in_hash(std::string_view metric) const;
  std::string known_hash(std::string_view metric, const std::string& recording) const;

  /// Aligns, resamples where a metric needs another rate, and measures. A metric that cannot judge these
  /// sounds is listed in `unscored`, as are those unavailable and those that do not cover the recording of
  /// this name. Errors: those of check_pair; format if nothing overlaps.
  Result<Report> compute(std::span<const float> reference, std::span<const float> degraded,
                         int sample_rate_hz, ThreadPool& pool, const std::string& recording = {}) const;

 private:
  struct Pair;
  Result<double> measure(std::string_view name, const Pair& pair, std::optional<Result<DnsmosScore>>& dnsmos,
                         ThreadPool& pool) const;
  std::optional<Error> load_phones();
  std::vector<std::int32_t> phones_of(const std::string& recording, double begin_s, double length_s) const;

  SuiteOptions options_;
  std::vector<const MetricInfo*> available_;
  std::vector<Unscored> unavailable_;
  std::optional<Visqol> speech_, speech_exponential_, audio_;
  std::optional<Dnsmos> dnsmos_;
  std::optional<PhoneClassifier> phones_;
  std::vector<std::int32_t> phone_classes_;  // of the classifier, by the number of the alignments
};

}  // namespace tessera::metrics
