// Which packets of a stream get lost: the two-state channel of Gilbert (1960) and Elliott (1963) in its
// plainest form, no loss in the good state and nothing but loss in the bad one. Leaves out single losses
// within the good state and traces measured on networks.
#pragma once

#include "apps/bench/codec_runner.h"
#include "core/random.h"
#include "core/result.h"

namespace tessera::bench {

class LossTrace {
 public:
  /// Error (usage): a rate outside [0, 1), a mean burst below 1, or a rate that needs longer bursts (gaps are
  /// at least one packet, so rate <= mean_burst / (mean_burst + 1)).
  static Result<LossTrace> create(const LossOptions& options);

  /// Whether the next packet is lost. The sequence depends on the options alone.
  bool next();

 private:
  explicit LossTrace(const LossOptions& options);
  bool chance(double probability);

  Random random_;
  double enter_;  // from received to lost
  double leave_;  // from lost to received
  bool lost_;     // whether the packet that next() is asked for is lost
};

}  // namespace tessera::bench
