// The inner loop of the gammatone filterbank, for whatever instructions the CPU has.
#pragma once

#include <cstddef>
#include <span>

namespace tessera::metrics {

/// Coefficient rows are padded to a multiple of this many bands.
constexpr std::size_t kBandLanes = 8;

/// energy[band] = the sum of squares of `frame` after four sections (1 + zero_i z^-1) / (1 + pole_1 z^-1 +
/// pole_2 z^-2). `coefficients` [6, padded]: zero_1..4, pole_1, pole_2. Lanes run across bands, sums along
/// the samples in order: the same bits for any vector length.
void gammatone_energies(std::span<const double> frame, const double* coefficients, std::size_t padded,
                        double* energy);

}  // namespace tessera::metrics
