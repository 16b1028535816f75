// Discriminators tell recordings from what a codec made of them; training a codec against them sharpens what
// spectral losses leave blurred (Goodfellow et al. 2014). One interface for all kinds, and several as one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/autograd/tape.h"

namespace tessera::train {

/// What the sub-discriminators (one per resolution, per period) say of a batch.
struct Judgement {
  std::vector<Tensor> scores = {};                 ///< logits, one for each patch of signal: above 0 for real
  std::vector<std::vector<Tensor>> features = {};  ///< outputs of the hidden layers, as many lists as scores
};

/// Whether the weights take part in the recording.
enum class Mode : std::uint8_t {
  learning,  ///< gradients flow to the weights, and to x if it is recorded
  frozen,    ///< to x only: for the step of the generator
};

class Discriminator {
 public:
  virtual ~Discriminator() = default;
  /// x [B, T], amplitudes about -1 to 1. Throws UsageError if it is too short for a window or period.
  virtual Judgement judge(Tape& tape, const Tensor& x, Mode mode = Mode::learning) const = 0;
};

/// Several discriminators as one: their scores and features one after the other.
class Jury final : public Discriminator {
 public:
  void add(std::unique_ptr<Discriminator> member) { members_.push_back(std::move(member)); }

  Judgement judge(Tape& tape, const Tensor& x, Mode mode = Mode::learning) const override {
    Judgement all;
    for (const auto& member : members_) {
      Judgement one = member->judge(tape, x, mode);
      for (Tensor& scores : one.scores) all.scores.push_back(std::move(scores));
      for (std::vector<Tensor>& features : one.features) all.features.push_back(std::move(features));
    }
    return all;
  }

 private:
  std::vector<std::unique_ptr<Discriminator>> members_;
};

}  // namespace tessera::train
