// The rows of a benchmark gathered for tables and charts: by set of recordings, codec and operating point,
// with means over recordings and their intervals. Rows with simulated loss are gathered apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/bd_rate.h"
#include "apps/bench/result.h"
#include "apps/bench/statistics.h"

namespace tessera::bench {

/// Set and path of a recording: what two codecs are compared on.
using RecordingKey = std::pair<std::string, std::string>;

/// One codec at one setting, over the recordings of a scope.
struct PointSummary {
  std::string point = {};
  Interval kbps = {};                           ///< all file bytes over all seconds
  double payload_kbps = 0;                      ///< likewise; NaN where a row does not know it
  std::map<std::string, Interval> scores = {};  ///< by metric; only those that some recording has
  std::int64_t failed = 0;                      ///< recordings that could not be coded
  double loss_rate = 0;
  /// The recordings that were coded, without those that failed; scores may lack. Points
  /// into the Results.
  std::map<RecordingKey, const ResultRow*> rows = {};

  const Interval* score(const std::string& metric) const;
};

struct CodecSummary {
  std::string codec = {};
  int style = 0;                          ///< the same for a codec in all charts
  std::vector<PointSummary> points = {};  ///< in order of rate; those where all recordings failed come first
};

/// A set of recordings, or all of them.
struct Scope {
  std::string name = {};
  std::vector<CodecSummary> codecs = {};  ///< in the order of the results
};

/// "all recordings" first; then each set, where there is more than one. Rows with loss are not looked at. The
/// results must outlive what is returned.
std::vector<Scope> summarize(const Results& results, const BootstrapOptions& options = {});
/// One scope of the rows of `set` (empty: of all).
Scope summarize_set(const Results& results, const std::string& set, const BootstrapOptions& options = {});

/// Of every codec and point that was also run with simulated loss: the points by rate of loss, 0 included, as
/// a curve of its own, named "codec, point".
std::vector<CodecSummary> summarize_loss(const Results& results, const BootstrapOptions& options = {});

/// Scores of the recordings that all of `points` have, in one order: what bd_rate() takes.
std::vector<std::vector<PointSamples>> common_samples(const std::vector<const CodecSummary*>& codecs,
                                                      const std::string& metric);

/// The score of a row, or null where it is not known or not a number.
const double* score_of(const ResultRow& row, const std::string& metric);

}  // namespace tessera::bench
