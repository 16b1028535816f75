// Streaming sample rate conversion through libswresample. The filter runs in integers (32-bit samples and
// taps, 64-bit sums), which has no SIMD variant: every CPU gives the same bits, as the codecs need for equal
// tokens. A Kaiser-windowed sinc of 128 taps at the lower of the two rates: flat within 0.01 dB to 0.9 of the
// lower Nyquist frequency, aliases and images below -96 dB (docs/media.md). Zero delay: output frame k lies
// at time k / rate out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"

namespace tessera {

class Resampler {
 public:
  /// Rates from 1000 to 768000 Hz, channels from 1 to 64; else an Error of code usage.
  static Result<Resampler> create(int rate_in_hz, int rate_out_hz, int channels);

  /// Output frames for `frames` input frames: ceil(frames * rate out / rate in).
  static int64_t output_frames(int64_t frames, int rate_in_hz, int rate_out_hz);

  Resampler(Resampler&&) noexcept;
  Resampler& operator=(Resampler&&) noexcept;
  ~Resampler();

  /// Takes whole interleaved frames, appends what is ready to `out`. How the input is cut into pushes does
  /// not change a bit. Sound before the start and after the end counts as silence.
  Result<void> push(std::span<const float> interleaved, std::vector<float>& out);
  /// Appends the rest: in all exactly output_frames(frames pushed). The stream is over then.
  Result<void> flush(std::vector<float>& out);

  /// Samples beyond the headroom of +-16 (24 dB above full scale), limited to it.
  int64_t clipped() const;

 private:
  struct State;
  explicit Resampler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tessera
