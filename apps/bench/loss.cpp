// The chain starts in its stationary distribution, so that short recordings lose as much as long ones on
// average.
#include "apps/bench/loss.h"

#include <string>

namespace tessera::bench {

Result<LossTrace> LossTrace::create(const LossOptions& options) {
  const double rate = options.rate, burst = options.mean_burst;
  if (!(rate >= 0 && rate < 1)) {
    return Error{ErrorCode::usage, "expected a loss rate from 0 to below 1, got " + std::to_string(rate)};
  }
  if (!(burst >= 1 && burst <= 1e6)) {
    return Error{ErrorCode::usage,
                 "expected a mean burst of 1 to 1000000 lost packets, got " + std::to_string(burst)};
  }
  if (rate > burst / (burst + 1)) {
    return Error{ErrorCode::usage, "a loss rate of " + std::to_string(rate) +
                                       " needs longer bursts: expected at most " +
                                       std::to_string(burst / (burst + 1)) + " with bursts of " +
                                       std::to_string(burst) + " packets"};
  }
  return LossTrace(options);
}

LossTrace::LossTrace(const LossOptions& options)
    : random_(options.seed),
      enter_(options.rate / ((1 - options.rate) * options.mean_burst)),
      leave_(1 / options.mean_burst),
      lost_(chance(options.rate)) {}

bool LossTrace::next() {
  const bool now = lost_;
  lost_ = now ? !chance(leave_) : chance(enter_);
  return now;
}

bool LossTrace::chance(double probability) {
  return static_cast<double>(random_.next() >> 11) * 0x1p-53 < probability;
}

}  // namespace tessera::bench
