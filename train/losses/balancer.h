// The loss balancer of EnCodec (Défossez et al. 2022, section 3.4): losses that reach the model only through
// its output are weighted by what their gradients there weigh, so a weight says which share of the update a
// loss has, whatever its scale. Losses on anything else (commitment, distillation) are added beside it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/tape.h"
#include "core/result.h"
#include "train/parameters.h"

namespace tessera::train {

struct NamedLoss {
  std::string name = {};
  /// The loss [1] of an output. Called once. Its own parameters get gradients, too, unweighted ones: a
  /// discriminator takes part frozen.
  std::function<Tensor(Tape&, const Tensor& output)> loss = {};
};

struct BalancerOptions {
  float total_norm = 1;  ///< R: the norm per clip of the sum, were all gradients alike
  double decay = 0.999;  ///< of the moving averages of the norms, per step
  float epsilon = 1e-12f;
};

class Balancer {
 public:
  /// A weight above 0 for every name. Throws UsageError otherwise, or for options that cannot work.
  explicit Balancer(const std::map<std::string, float>& weights, const BalancerOptions& options = {});
  Balancer(Balancer&&) = default;  // not copied: both would share their averages
  Balancer& operator=(Balancer&&) = default;

  /// output [B, ...] and losses of it, each with a weight here -> the weighted sum of their values, [1]. Its
  /// gradient to `output` is not that of this sum but the balanced one: R w_i / (sum of the w of `losses`)
  /// g_i / (mean norm of g_i per clip, averaged over steps), summed in order. Add other losses to it and call
  /// backward() once. Losses run one after the other: no two hold memory at once, and what two of them share
  /// is computed twice. A gradient that is not finite goes on as it is and leaves the averages alone.
  Tensor combine(Tape& tape, const Tensor& output, std::span<const NamedLoss> losses);

  /// What combine() found last, in the order of the losses.
  struct Term {
    std::string name = {};
    float loss = 0;
    float gradient_norm = 0;  ///< this step's mean over clips
  };
  const std::vector<Term>& terms() const { return terms_; }

  /// The moving averages by name, f64 [2] each: the sum of past norms, each times decay to the power of its
  /// age, and the sum of these powers. They share the balancer's storage.
  NamedTensors state() const;
  /// Takes copies of them back. The names must be exactly those of the weights; otherwise nothing changes and
  /// the error (mismatch) names the first that does not fit.
  Result<void> restore(std::span<const std::pair<std::string, Tensor>> state);

 private:
  struct Entry {
    float weight = 0;
    Tensor average = {};  // as in state(): the quotient has no bias towards 0 in early steps
  };
  Entry& entry(const std::string& name);
  /// Takes a norm into the average; returns that.
  double averaged(const Entry& entry, double norm) const;
  Tensor balanced(Tape& tape, const Tensor& output, std::span<const NamedLoss> losses, double total);

  std::map<std::string, Entry> entries_;
  BalancerOptions options_;
  std::vector<Term> terms_;
};

}  // namespace tessera::train
