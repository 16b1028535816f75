// Framed transforms as fixed convolutions: the MDCT (Princen and Bradley 1986) and the short-time Fourier
// transform, each with its inverse. Framing, window and transform are one matrix, so they stream, batch and
// keep their bits like any Conv1d. Bases come from core/exact_math.h and are the same numbers on every
// machine.
#pragma once

#include <memory>
#include <vector>

#include "core/layer.h"

namespace tessera {

/// [hop, 2 * hop]: sqrt(2 / hop) cos(pi / hop (n + 1/2 + hop/2) (k + 1/2)) sin(pi (n + 1/2) / (2 hop)). Its
/// transpose is the inverse: overlapped by half, frames add up to the input.
std::vector<float> mdct_basis(int hop);
/// The periodic Hann window [length].
std::vector<float> hann_window(int length);

/// x [samples, 1] -> [frames, hop] MDCT coefficients; frame t sees samples (t - 1) hop to (t + 1) hop - 1.
std::unique_ptr<Layer> mdct(int hop);
/// [frames, hop] -> [samples, 1], `hop` samples late: output block t is input block t - 1.
std::unique_ptr<Layer> inverse_mdct(int hop);

/// x [samples, 1] -> [frames, 2 * (length / 2 + 1)]: real parts, then imaginary parts of the DFT of each
/// frame of `window.size()` samples times the window; a frame every `hop` samples, its last sample the
/// newest. The length is even and at least hop.
std::unique_ptr<Layer> stft(const std::vector<float>& window, int hop);
/// The inverse by windowed overlap-add, length - hop samples late; divides by the sum of squared windows,
/// which must not vanish; hop must divide the length.
std::unique_ptr<Layer> inverse_stft(const std::vector<float>& window, int hop);

}  // namespace tessera
