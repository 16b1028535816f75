// The DFT of real, windowed frames and its transpose, many frames at once: vector lanes run across frames, so
// one frame's arithmetic has one order on every instruction set and whatever frames lie beside it. Any even
// length: Stockham's self-sorting FFT (see Van Loan 1992, 1.7) of half the length over packed pairs of
// samples, in factors 4, 2 and odd primes. A large prime p costs p operations per sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::train {

/// What is kept of a spectrum.
enum class SpectrumKind : std::uint8_t {
  complex,    ///< real and imaginary parts in turn: 2 bins values
  power,      ///< re^2 + im^2
  magnitude,  ///< sqrt(re^2 + im^2 + 2^-80): finite gradients at 0, which becomes 1e-12
};

class FrameDft {
 public:
  /// How many frames a call takes.
  static constexpr int kFrames = 16;

  /// Frames are multiplied by `window` first; its length is even and at least 2 (UsageError).
  explicit FrameDft(std::span<const float> window);

  int length() const { return static_cast<int>(window_.size()); }
  int bins() const { return length() / 2 + 1; }
  /// Values per frame of a spectrum.
  int values(SpectrumKind kind) const { return kind == SpectrumKind::complex ? 2 * bins() : bins(); }
  /// Floats of working memory that a call needs; a multiple of 16, to be aligned to 64 bytes.
  std::size_t scratch_floats() const;

  /// X[k] = sum over n of window[n] x[n] exp(-2 pi i k n / length), k = 0 to length / 2, of kFrames frames.
  /// frames[i]: `length` samples; spectra[i]: values(kind) floats. Pointers may be equal or overlap among the
  /// frames, and spectra may share a row that nobody reads.
  void forward(const float* const* frames, SpectrumKind kind, float* const* spectra, float* scratch) const;
  /// d L / d x of every frame from d L / d spectrum: a DFT again, its coefficients the gradients. `frames`
  /// are those of forward(), not looked at for SpectrumKind::complex.
  void backward(const float* const* frames, SpectrumKind kind, const float* const* spectrum_gradients,
                float* const* frame_gradients, float* scratch) const;

  /// One pass of the FFT over half the length: `radix` inputs that lie count * stride apart give outputs that
  /// lie `stride` apart; `count` groups with twiddle factors of their own, `stride` of each.
  struct Stage {
    int radix = 0;
    int count = 0;
    int stride = 0;
    std::size_t twiddles = 0;  ///< where in the table: [count, radix - 1] pairs
    std::size_t roots = 0;     ///< [radix] pairs, for odd radices
  };
  /// Numbers that the kernels read: pairs (cos, -sin).
  struct Tables {
    std::vector<Stage> stages = {};
    std::vector<float> factors = {};
    std::vector<float> halves = {};  ///< (-sin, -cos) / 2 of turn k / length, k = 0 to length / 4
  };

 private:
  std::vector<float> window_;
  Tables tables_;
};

}  // namespace tessera::train
