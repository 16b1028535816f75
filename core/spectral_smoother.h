// Smooths the short-time spectrum of what a codec has decoded over time, magnitudes only, up to some
// frequency: the noise of coding lets harmonics flicker from frame to frame, which is heard as roughness. (A
// post-filter in the manner of decision-directed noise suppression, Ephraim and Malah 1984, with windows
// ahead and behind.)
//
// Needs no side information. docs/tessera-family.md has the formulas.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/causal_window.h"
#include "core/layer.h"

namespace tessera {

struct SpectralSmootherOptions {
  int hop = 160;   ///< samples between two windows, each two hops long
  int bins = 30;   ///< of a window's spectrum that are smoothed, from 0 Hz up
  int before = 3;  ///< windows that are averaged
  int after = 2;   ///< the same, ahead
};

/// x [samples, 1] -> y [samples, 1], delay() samples late, in whole hops.
class SpectralSmoother : public Layer {
 public:
  /// Throws UsageError for sizes below 1, more bins than the hop and more than 8 windows.
  explicit SpectralSmoother(const SpectralSmootherOptions& options);

  const SpectralSmootherOptions& options() const { return options_; }
  /// Samples before and after a hop that its output depends on.
  int past() const { return past_; }
  int delay() const { return future_; }

  /// The parts of it, for `hops` hops in a row: sound runs from past() samples before the first to delay()
  /// samples after the last. A spectrum is `bins` real parts, then as many imaginary ones.
  ///
  /// Windows in so many hops, and those whose spectrum changes.
  std::size_t windows(std::size_t hops) const { return changed(hops) + taps_.size() - 1; }
  std::size_t changed(std::size_t hops) const { return hops + 1; }
  std::size_t spectrum_size() const { return 2 * static_cast<std::size_t>(options_.bins); }

  /// spectra [windows, spectrum_size()] and logs [windows, bins] of their magnitudes.
  void analyze(std::span<const float> sound, float* spectra, double* logs) const;
  /// What is added to spectra: changes [changed, spectrum_size()].
  void smooth(const float* spectra, const double* logs, std::size_t hops, float* changes) const;
  /// The output: y [hops * hop].
  void combine(std::span<const float> sound, const float* changes, float* y) const;
  /// Gradients of combine(): dsound is added to, dchanges is written.
  void combine_gradient(const float* dy, std::size_t hops, std::span<float> dsound, float* dchanges) const;
  /// Of smooth() and analyze(), added to dsound.
  void analyze_gradient(const float* spectra, const double* logs, const float* dchanges, std::size_t hops,
                        std::span<float> dsound) const;

  int in_channels() const override { return 1; }
  int out_channels() const override { return 1; }
  std::size_t state_bytes() const override { return window_.state_bytes(); }
  void init_state(std::byte* state) const override { window_.init_state(state); }
  int max_rows(int rows) const override;
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  double change(const double* logs) const;
  const float* row(const std::vector<float>& table, std::size_t i) const {
    return table.data() + i * 2 * static_cast<std::size_t>(options_.hop);
  }

  SpectralSmootherOptions options_;
  int past_, future_;
  std::vector<double> taps_;                 // [before + 1 + after], their sum 1
  std::vector<float> analysis_, synthesis_;  // [spectrum_size(), 2 hop], windows included
  CausalWindow window_;
};

}  // namespace tessera
