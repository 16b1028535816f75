// NSIM, the neurogram similarity index (Hines and Harte 2012): intensity and structure of two spectrogram
// patches, compared in 3 x 3 neighbourhoods. Intermediate sums of a whole spectrogram are made once and serve
// every patch of it.
#pragma once

#include <cstddef>
#include <vector>

#include "metrics/gammatone.h"

namespace tessera::metrics {

/// For each row of a spectrogram and of its squares: the weighted sums along the bands that a neighbourhood
/// takes from a row beside its centre (`side`) and from that of its centre (`middle`). Edge bands count twice
/// where a neighbour is missing. Rows are padded to `stride` for the vectors of the CPU.
struct NeighbourSums {
  std::size_t frames = 0, bands = 0, stride = 0;
  std::vector<double> values, side, middle, side_of_squares, middle_of_squares;  ///< each [frames, stride]

  /// With `silence` more rows of zeros behind the spectrogram.
  explicit NeighbourSums(const Spectrogram& spectrogram, std::size_t silence = 0);
};

/// The similarity of two patches of `frames` rows, one from each spectrogram: the mean of `map` [frames,
/// stride], which receives that of each frame and band, -1 to 1 (and has room for work behind that). Edge
/// frames of a patch stand for those beyond it.
double similarity(const NeighbourSums& reference, std::size_t reference_begin, const NeighbourSums& degraded,
                  std::size_t degraded_begin, std::size_t frames, std::vector<double>& map);

}  // namespace tessera::metrics
