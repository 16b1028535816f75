// Losses of the game between a generator and its discriminators. Feature matching (Larsen et al. 2016) in the
// relative form of EnCodec (Défossez et al. 2022).
#pragma once

#include <cstdint>

#include "core/autograd/tape.h"
#include "train/discriminators/discriminator.h"

namespace tessera::train {

/// D the scores, x real, y generated; means over all scores of a sub-discriminator.
enum class AdversarialLoss : std::uint8_t {
  hinge,          ///< discriminator: relu(1 - D(x)) + relu(1 + D(y)); generator: relu(1 - D(y)), as EnCodec
  hinge_linear,   ///< the generator's is -D(y), which pulls at every score (Lim and Ye 2017)
  least_squares,  ///< (D(x) - 1)^2 + D(y)^2; (D(y) - 1)^2 (Mao et al. 2017)
};

/// What the discriminators minimise, averaged over them: [1].
Tensor discriminator_loss(Tape& tape, const Judgement& real, const Judgement& fake,
                          AdversarialLoss form = AdversarialLoss::hinge);
/// What the generator minimises, averaged over the discriminators: [1].
Tensor generator_loss(Tape& tape, const Judgement& fake, AdversarialLoss form = AdversarialLoss::hinge);
/// mean |f(x) - f(y)| / mean |f(x)|, averaged over the features of a sub-discriminator and then over these:
/// [1]. No gradient flows to the real ones. The divisor is at least 1e-3: silence divides by no zero.
Tensor feature_matching_loss(Tape& tape, const Judgement& real, const Judgement& fake);

}  // namespace tessera::train
