// The short-time Fourier transform on the tape, for losses and discriminators: periodic Hann windows, centred
// frames, gradients exact. Computed by an FFT (frame_dft.h) in f32 whatever the tape's precision is.
// Left out: windows shorter than the transform (zero-padded frames) and the inverse.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/rearrange.h"
#include "core/autograd/tape.h"
#include "train/losses/frame_dft.h"

namespace tessera::train {

struct StftOptions {
  int window = 1024;  ///< samples, even, 2 to 16384
  int hop = 256;      ///< samples from one frame to the next
  /// Frame f is centred on sample f hop; window / 2 samples are added at both ends. Reflection needs clips
  /// longer than that.
  ops::Padding padding = ops::Padding::reflect;
  /// Divides the window by the root of its sum of squares: noise of deviation s has E |X|^2 = s^2 for every
  /// window.
  bool normalized = false;
};

class Stft {
 public:
  /// Makes the tables; throws UsageError for options that cannot work. Copies share the tables.
  explicit Stft(const StftOptions& options);

  /// x [B, T] -> [B, frames(T), bins(), 2] for SpectrumKind::complex, otherwise [B, frames(T), bins()].
  Tensor operator()(Tape& tape, const Tensor& x, SpectrumKind kind) const;

  const StftOptions& options() const { return options_; }
  int bins() const { return dft_->bins(); }
  /// 1 + samples / hop, rounded down.
  std::int64_t frames(std::int64_t samples) const { return 1 + samples / options_.hop; }

 private:
  StftOptions options_;
  std::shared_ptr<const FrameDft> dft_;
};

}  // namespace tessera::train

namespace tessera::ops {

/// x [B, T] -> the complex spectrum [B, 1 + T / hop, window / 2 + 1, 2] with reflected ends. Makes its tables
/// anew: what runs every step keeps a train::Stft.
Tensor stft(Tape& tape, const Tensor& x, int window, int hop);

}  // namespace tessera::ops
