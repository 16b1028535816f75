// From the words of a command line to what run_suite() takes: which codecs at which points and losses, which
// metrics. What cannot take part is listed with its reason, never dropped in silence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/codec_runner.h"
#include "apps/bench/measurement.h"
#include "apps/bench/report.h"
#include "apps/bench/suite.h"
#include "core/result.h"
#include "metrics/metric_suite.h"

namespace tessera::bench {

/// A codec and the words that made it.
struct PlannedCodec {
  std::string spec = {};
  std::unique_ptr<CodecRunner> runner = {};
};

/// Makes them. Empty: tessera, opus, codec2 and speex, those not built in left out. Errors: those of
/// make_runner(); usage (two of one name).
Result<std::vector<PlannedCodec>> plan_codecs(const std::vector<std::string>& specs,
                                              std::vector<LeftOut>& left_out);

/// Every point that one of the patterns fits (shell patterns on "codec/point" and on "point"; none: all),
/// without loss, then with each loss where the codec conceals. Errors (usage): a pattern that fits nothing.
Result<std::vector<Series>> plan_series(const std::vector<PlannedCodec>& codecs,
                                        const std::vector<std::string>& patterns,
                                        const std::vector<LossOptions>& losses,
                                        std::vector<LeftOut>& left_out);

/// The metrics, loaded. `names` empty: those meant for speech, as far as their model files are there; "all":
/// every one, likewise; else exactly those. phone_error needs files of `alignments`. Errors: usage (no such
/// metric, one that cannot be had), those of PhoneAlignments::read, mismatch (phones that are not known).
Result<metrics::MetricSuite> plan_metrics(const std::vector<std::string>& names,
                                          const std::string& model_folder,
                                          const std::vector<std::string>& alignments,
                                          std::vector<LeftOut>& left_out);

/// What to tell of recordings for which a metric has no value, empty if there are none. Error (usage): it has
/// one for none of them.
Result<std::vector<std::string>> uncovered(const metrics::MetricSuite& suite,
                                           const std::vector<Recording>& recordings);

}  // namespace tessera::bench
