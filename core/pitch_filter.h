// A comb filter at the pitch of voiced sound, for what a codec has decoded: below a corner frequency each
// sample becomes a weighted mean with those some periods before and after it, as far as the sound is periodic
// there. Harmonics pass, the noise of coding between them falls. (Long-term post-filters: Ramamoorthy and
// Jayant 1984, Chen and Gersho 1995; with periods ahead as in the comb filter of PercepNet, Valin et al.
// 2020.)
//
// Needs no side information: the pitch is estimated from the decoded sound. docs/tessera-family.md has the
// formulas.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/causal_window.h"
#include "core/layer.h"

namespace tessera {

/// Times are in samples.
struct PitchFilterOptions {
  int hop = 80;           ///< between two estimates of the pitch
  int shortest = 32;      ///< period
  int longest = 304;      ///< period, and how many samples are compared with those a period later
  int before = 2;         ///< periods that are averaged
  int after = 1;          ///< the same, ahead: the filter is late by so many longest periods and `smoothing`
  int smoothing = 16;     ///< period of the corner frequency, half the length of the low-pass filter
  float strength = 0.6f;  ///< weight of neighbouring periods where the sound is periodic; its own weight is 1
};

/// The pitch at one instant.
struct Pitch {
  int period = 0;    ///< 0: none yet
  float weight = 0;  ///< of the neighbouring periods, 0 to strength
  int voiced = 0;    ///< 1: the next estimate may follow this one. No bool: states have no padding

  bool operator==(const Pitch&) const = default;
};

/// x [samples, 1] -> y [samples, 1], delay() samples late, in whole hops.
class PitchFilter : public Layer {
 public:
  /// Throws UsageError for sizes below 1, for more than 8 periods, and for a strength outside 0 to 4.
  explicit PitchFilter(const PitchFilterOptions& options);

  const PitchFilterOptions& options() const { return options_; }
  /// Samples before and after one that its output depends on.
  int past() const { return past_; }
  int delay() const { return future_; }

  /// Working memory of track(), in scratch_bytes() bytes aligned for double.
  struct Scratch {
    std::span<double> sums, alike;
    std::span<float> phases;
  };
  std::size_t scratch_bytes() const;
  Scratch scratch_in(void* memory) const;

  /// The parts of it, for hops in a row: sound runs from past() samples before the first to delay() samples
  /// after the last.
  ///
  /// The low-pass filter over all samples of `sound` that have `smoothing` neighbours to both sides.
  void smooth(std::span<const float> sound, float* smoothed) const;
  /// pitches[0] is given; estimates the others, each at the end of a hop.
  void track(std::span<const float> smoothed, std::span<Pitch> pitches, const Scratch& scratch) const;
  /// The output: pitches.size() - 1 hops.
  void combine(std::span<const float> sound, std::span<const float> smoothed, std::span<const Pitch> pitches,
               float* y) const;
  /// From gradients of the output to those of `sound` and `smoothed`, which are added; pitches are constants.
  void combine_gradient(const float* dy, std::span<const Pitch> pitches, std::span<float> dsound,
                        std::span<float> dsmoothed) const;
  /// The gradient of smooth(), added.
  void smooth_gradient(std::span<const float> dsmoothed, std::span<float> dsound) const;

  int in_channels() const override { return 1; }
  int out_channels() const override { return 1; }
  std::size_t state_bytes() const override;
  void init_state(std::byte* state) const override;
  int max_rows(int rows) const override;
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  Pitch estimate(const float* center, const Pitch& before, const Scratch& scratch) const;
  template <class Body>
  void for_neighbours(const Pitch& pitch, const Body& body) const;
  template <class Body>
  void for_hops(std::span<const Pitch> pitches, const Body& body) const;

  PitchFilterOptions options_;
  int past_, future_;
  int step_;                   // between samples that are compared: there is little above 1 / smoothing
  std::vector<float> kernel_;  // [2 smoothing + 1]
  CausalWindow window_;
};

}  // namespace tessera
