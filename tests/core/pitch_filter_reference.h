// The pitch filter as docs/tessera-family.md writes it, in double precision, one sample at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/pitch_filter.h"

namespace tessera::test {

/// x, silence before and after it -> as many samples, options' delay late.
class PitchFilterReference {
 public:
  PitchFilterReference(const PitchFilterOptions& options, const std::vector<double>& x)
      : o_(options), x_(x), delay_(std::max(o_.after, 1) * o_.longest + o_.smoothing) {
    for (int i = -o_.smoothing; i <= o_.smoothing; ++i) total_ += kernel(i);
    for (long n = -kMargin; n < static_cast<long>(x.size()) + kMargin; ++n) smoothed_.push_back(smoothed(n));
    // Output begins delay samples before the sound does.
    periods_.push_back(0);
    weights_.push_back(0);
    bool voiced = false;
    for (std::size_t i = 1; i <= x.size() / static_cast<std::size_t>(o_.hop) + 1; ++i) estimate(i, voiced);
  }

  std::vector<double> output() const {
    std::vector<double> y;
    for (long n = 0; n < static_cast<long>(x_.size()); ++n) {
      const auto i = static_cast<std::size_t>(n / o_.hop);
      const double part = static_cast<double>(n % o_.hop) / o_.hop;
      y.push_back(at(n - delay_) + (1 - part) * change(i, n - delay_) + part * change(i + 1, n - delay_));
    }
    return y;
  }
  int period(std::size_t i) const { return periods_[i]; }
  double weight(std::size_t i) const { return weights_[i]; }

 private:
  static constexpr long kMargin = 4000;

  double at(long n) const {
    return n < 0 || n >= static_cast<long>(x_.size()) ? 0 : x_[static_cast<std::size_t>(n)];
  }
  double smooth_at(long n) const { return smoothed_[static_cast<std::size_t>(n + kMargin)]; }
  double kernel(int i) const {
    constexpr double kPi = std::numbers::pi;
    const double a = 2.0 * i / o_.smoothing;
    return (i == 0 ? 1 : std::sin(kPi * a) / (kPi * a)) *
           std::pow(std::cos(kPi / 2 * i / (o_.smoothing + 1)), 2);
  }
  double smoothed(long n) const {
    double sum = 0;
    for (int i = -o_.smoothing; i <= o_.smoothing; ++i) sum += kernel(i) / total_ * at(n + i);
    return sum;
  }
  double alike(long center, int period) const {
    double product = 0, power = 0;
    const long first = center - o_.longest + (o_.longest - period) / 2;
    const int step = std::max(1, o_.smoothing / 4), count = o_.longest / step;
    for (int k = 0; k < count * step; k += step) {
      const double a = smooth_at(first + k), b = smooth_at(first + k + period);
      product += a * b;
      power += (a * a + b * b) / 2;
    }
    return product / (power + 1e-9 * count);
  }
  void estimate(std::size_t i, bool& voiced) {
    const long center = static_cast<long>(i) * o_.hop - delay_;
    const int last = periods_.back();
    std::vector<double> values(static_cast<std::size_t>(o_.longest + 2));
    for (int p = o_.shortest; p <= o_.longest; ++p) {
      const bool follows = voiced && std::abs(p - last) <= std::max(3, last / 8);
      values[static_cast<std::size_t>(p)] = alike(center, p) + (follows ? 0.1 : 0);
    }
    const double best = *std::max_element(values.begin(), values.end());
    std::size_t chosen = static_cast<std::size_t>(o_.shortest);
    for (std::size_t p = chosen; p <= static_cast<std::size_t>(o_.longest); ++p) {
      if (values[p] > 0.85 * best && values[p] >= values[p - 1] && values[p] >= values[p + 1]) {
        chosen = p;
        break;
      }
    }
    periods_.push_back(static_cast<int>(chosen));
    weights_.push_back(o_.strength * std::clamp((values[chosen] - 0.3) / 0.5, 0.0, 1.0));
    voiced = values[chosen] > 0.5;
  }
  // What the neighbours under estimate i make of sample n, less the sample.
  double change(std::size_t i, long n) const {
    double sum = 0, all = 1;
    const int most = std::max(o_.before, o_.after) + 1;
    for (int d = -o_.before; d <= o_.after; ++d) {
      if (d == 0) continue;
      const double w = weights_[i] * (1 - std::abs(d) / static_cast<double>(most));
      sum += w * (smooth_at(n + static_cast<long>(d) * periods_[i]) - smooth_at(n));
      all += w;
    }
    return sum / all;
  }

  PitchFilterOptions o_;
  std::vector<double> x_;
  long delay_;
  double total_ = 0;
  std::vector<double> smoothed_;
  std::vector<int> periods_;
  std::vector<double> weights_;
};

}  // namespace tessera::test
