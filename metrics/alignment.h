// The delay of a decoded sound against its reference, found by cross-correlation, and the removal of it.
// Levels and signs stay as they are: correlation is signed, so a sound of inverted polarity does not align
// with itself. Leaves out delays of a fraction of a sample and delays that change.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::metrics {

struct Delay {
  std::int64_t samples = 0;  ///< degraded[n + samples] belongs to reference[n]: positive if it came late
  double correlation = 0;    ///< there, over the root of both energies: -1 to 1
};

/// The lag of the largest correlation within +-max_delay; of equal ones that nearest 0. Sounds of any
/// lengths; silence gives 0. Memory depends on max_delay, not on the lengths. Throws UsageError for max_delay
/// outside 0 to 2^24.
Delay find_delay(std::span<const float> reference, std::span<const float> degraded, std::int64_t max_delay);

/// A pair of equal lengths.
struct AlignedPair {
  std::vector<float> reference, degraded;
};
/// Shifts the degraded sound by `delay` samples and cuts what lies beyond the reference. Samples that the
/// shift itself left without a partner (no more than |delay|) are cut from the reference; what the degraded
/// sound lacks beyond that counts as silence, so that a dropped end costs. Both come back empty if nothing
/// overlaps.
AlignedPair align(std::span<const float> reference, std::span<const float> degraded, std::int64_t delay);

}  // namespace tessera::metrics
