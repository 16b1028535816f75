#include "apps/bench/latency.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/measurement.h"
#include "core/random.h"

namespace tessera::bench {
namespace {

// Changes are tried from 0.6 s on, over more than the longest frame (Mimi's 80 ms), in a sound of 1.2 s.
constexpr double kLength_s = 1.2, kFirst_s = 0.6, kSpan_s = 0.12, kStep_s = 0.005, kFurthest_s = 0.5;

// The loudest stretch: in a pause a codec may do nothing.
std::span<const float> loudest(std::span<const float> pcm, std::size_t length, std::size_t step) {
  std::size_t best = 0;
  double most = -1;
  for (std::size_t begin = 0; begin + length <= pcm.size(); begin += step) {
    double energy = 0;
    for (const float x : pcm.subspan(begin, length)) energy += static_cast<double>(x) * x;
    if (energy > most) {
      most = energy;
      best = begin;
    }
  }
  return pcm.subspan(best, length);
}

class Trial {
 public:
  Trial(const CodecRunner& runner, const OperatingPoint& point, std::span<const float> pcm, int rate_hz)
      : runner_(runner), point_(point), pcm_(pcm), rate_hz_(rate_hz) {}

  /// Decodes the sound as it is, twice.
  Result<void> prepare() {
    for (std::vector<float>* place : {&plain_, &again_}) {
      auto coded = run_codec(runner_, point_, pcm_, rate_hz_, {});
      if (!coded) return coded.error();
      *place = std::move(coded->pcm);
    }
    if (first_difference(again_)) {
      return Error{ErrorCode::unsupported, runner_.name() + ": gives another sound each time"};
    }
    return {};
  }

  /// Where the decoded sound first differs if the input does from n on; none: nowhere.
  Result<std::optional<std::int64_t>> first_difference_from(std::int64_t n) {
    std::vector<float> changed(pcm_.begin(), pcm_.end());
    Random random(1);
    for (auto i = static_cast<std::size_t>(n); i < changed.size(); ++i) {
      changed[i] = (random.uniform() < 0.5F ? -0.5F : 0.5F) - 0.4F * changed[i];
    }
    const auto coded = run_codec(runner_, point_, changed, rate_hz_, {});
    if (!coded) return coded.error();
    return first_difference(coded->pcm);
  }

 private:
  std::optional<std::int64_t> first_difference(const std::vector<float>& other) const {
    const std::size_t length = std::min(plain_.size(), other.size());
    for (std::size_t i = 0; i < length; ++i) {
      if (std::abs(static_cast<double>(plain_[i]) - static_cast<double>(other[i])) > kLeastDifference) {
        return static_cast<std::int64_t>(i);
      }
    }
    return std::nullopt;
  }

  const CodecRunner& runner_;
  const OperatingPoint& point_;
  std::span<const float> pcm_;
  int rate_hz_;
  std::vector<float> plain_ = {}, again_ = {};
};

}  // namespace

Result<double> measure_latency_ms(const CodecRunner& runner, const OperatingPoint& point,
                                  std::span<const float> pcm, int sample_rate_hz,
                                  std::int64_t delay_samples) {
  const auto samples = [&](double seconds) {
    return static_cast<std::int64_t>(std::llround(seconds * sample_rate_hz));
  };
  const std::int64_t length = samples(kLength_s), step = samples(kStep_s);
  if (static_cast<std::int64_t>(pcm.size()) < length) {
    return Error{ErrorCode::usage,
                 "latency: expected 1.2 s of sound, got " + std::to_string(pcm.size()) + " samples"};
  }
  Trial trial(runner, point, loudest(pcm, static_cast<std::size_t>(length), static_cast<std::size_t>(step)),
              sample_rate_hz);
  if (const auto ready = trial.prepare(); !ready) return ready.error();

  struct Found {
    std::int64_t n = 0, m = 0;
    std::int64_t wait() const { return n - m; }
  };
  std::vector<Found> found;
  for (std::int64_t n = samples(kFirst_s); n <= samples(kFirst_s + kSpan_s); n += step) {
    const auto m = trial.first_difference_from(n);
    if (!m) return m.error();
    if (*m) found.push_back({n, **m});
  }
  if (found.empty()) {
    return Error{ErrorCode::unsupported, runner.name() + ": the decoded sound does not follow the input"};
  }
  // The longest wait ends where a frame does: before the next change is seen elsewhere.
  std::size_t best = 0;
  for (std::size_t i = 1; i + 1 < found.size(); ++i) {
    if (found[i].wait() > found[best].wait()) best = i;
  }
  Found last = found[best];
  if (best + 1 < found.size()) {
    std::int64_t beyond = found[best + 1].n;
    while (beyond - last.n > 1) {
      const std::int64_t middle = last.n + (beyond - last.n) / 2;
      const auto m = trial.first_difference_from(middle);
      if (!m) return m.error();
      if (*m && **m <= last.m) {
        last = {middle, **m};
      } else {
        beyond = middle;
      }
    }
  }
  if (last.wait() + delay_samples > samples(kFurthest_s)) {
    return Error{ErrorCode::unsupported, runner.name() + ": the decoded sound changes from its beginning on"};
  }
  return static_cast<double>(last.wait() + delay_samples + 1) * 1000 / sample_rate_hz;
}

}  // namespace tessera::bench
