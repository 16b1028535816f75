// Semantic distillation (SpeechTokenizer, Zhang et al. 2023; Mimi, Défossez et al. 2024): the first codebook
// learns what a self-supervised speech model hears, by the cosine distance between its output, projected, and
// the teacher's frames.
#pragma once

#include "core/autograd/tape.h"

namespace tessera::train {

/// How frames of the codec and of the teacher relate: one of the two is 1.
struct DistillationOptions {
  int pool = 1;    ///< codec frames averaged for one teacher frame; what does not fill one is left out
  int repeat = 1;  ///< teacher frames that each codec frame stands for
};

/// z [B, T, D] the quantized output of the first codebook, weight [D, E] and bias [E] the projection (bias
/// may be undefined), teacher [B, T', E], mask [B, T'] the weight of each teacher frame, 0 where it does not
/// count (undefined: all count) -> 1 - the weighted mean of cos(z weight + bias, teacher), [1]; 0 if no frame
/// counts. T' = T / pool rounded down, or T repeat. The teacher and the mask get no gradient.
Tensor distillation_loss(Tape& tape, const Tensor& z, const Tensor& weight, const Tensor& bias,
                         const Tensor& teacher, const Tensor& mask = {},
                         const DistillationOptions& options = {});

}  // namespace tessera::train
