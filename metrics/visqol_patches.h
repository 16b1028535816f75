// The patches of ViSQOL: stretches of the reference's spectrogram, each matched with a stretch of the
// degraded one by dynamic programming, then aligned once more by its samples (Hines et al. 2015).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "metrics/gammatone.h"
#include "metrics/nsim.h"

namespace tessera::metrics {

/// First frames of patches that follow one another through the spectrogram; empty if it is too short for one.
std::vector<std::size_t> even_patches(std::size_t frames, std::size_t patch_frames);
/// The same without those in which nobody speaks: by the level of frames of `hop` samples, relative to the
/// reference's highest sample.
std::vector<std::size_t> voiced_patches(std::span<const double> reference, std::size_t hop,
                                        std::size_t frames, std::size_t patch_frames);

/// A patch and what it was compared with.
struct PatchMatch {
  double similarity = 0;
  std::vector<double> band_means = {};       ///< similarity of each band
  std::vector<double> band_deviations = {};  ///< over the frames of the patch
  std::vector<double> band_energies = {};    ///< dB of the degraded patch above the common floor
  bool lost = false;                         ///< nothing in the degraded sound corresponds to it
  double reference_begin_s = 0, reference_end_s = 0;
  double degraded_begin_s = 0, degraded_end_s = 0;
};

/// Statistics of a comparison of `frames` rows from the given ones on.
PatchMatch compare(const NeighbourSums& reference, std::size_t reference_begin, const NeighbourSums& degraded,
                   std::size_t degraded_begin, std::size_t frames);

struct MatchOptions {
  std::size_t patch_frames = 20;
  std::size_t search_patches = 60;  ///< a match lies at most so many patches before or after
  double frame_s = 0.02;
};
/// The sequence of matches in rising order whose similarities have the largest sum. `degraded` holds
/// patch_frames rows of silence behind its spectrogram. Empty if the degraded sound ends before the first
/// patch.
std::vector<PatchMatch> match_patches(const NeighbourSums& reference, std::span<const std::size_t> patches,
                                      const NeighbourSums& degraded, const MatchOptions& options);

/// Aligns each match by its own samples, compares anew, and keeps what is more similar.
void realign(std::vector<PatchMatch>& matches, std::span<const double> reference,
             std::span<const double> degraded, const GammatoneFilterbank& filterbank, int sample_rate_hz);

}  // namespace tessera::metrics
