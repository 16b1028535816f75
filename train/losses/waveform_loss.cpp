#include "train/losses/waveform_loss.h"

#include <string>

#include "core/autograd/rearrange.h"
#include "core/error.h"
#include "train/losses/terms.h"

namespace tessera::train {

Tensor waveform_l1(Tape& tape, const Tensor& output, const Tensor& target) {
  expect_clips("waveform_l1", output, target);
  return mean_difference(tape, output, target);
}

Tensor pre_emphasize(Tape& tape, const Tensor& x, float coefficient) {
  expect_clips("pre_emphasize", x, x);
  const Tensor late = ops::slice(tape, ops::pad(tape, x, 1, 1, 0), 1, 0, x.dim(1));  // [B, T]
  return ops::sub(tape, x, ops::affine(tape, late, coefficient));
}

Tensor normalized_error(Tape& tape, const Tensor& output, const Tensor& target,
                        const NormalizedErrorOptions& options) {
  expect_clips("normalized_error", output, target);
  if (!(options.floor_rms > 0)) {
    fail("normalized_error", "a floor above 0", std::to_string(options.floor_rms));
  }
  Tensor difference = ops::sub(tape, output, target), reference = target;
  if (options.pre_emphasis != 0) {
    difference = pre_emphasize(tape, difference, options.pre_emphasis);
    reference = pre_emphasize(tape, reference, options.pre_emphasis);
  }
  const float floor = static_cast<float>(target.dim(1)) * options.floor_rms * options.floor_rms;
  return ops::mean(tape, energy_ratio(tape, difference, reference, floor));
}

}  // namespace tessera::train
