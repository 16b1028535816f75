// The transforms of winograd.h for one tile: sums and exact or once rounded products only, so the same bits
// for any vector length.
#pragma once

#include <cstddef>

namespace tessera::metrics {

inline constexpr int kWinogradOut = 4;                   ///< rows and columns of a tile of outputs
inline constexpr int kWinogradIn = 6;                    ///< of the inputs that it needs
inline constexpr std::size_t kWinogradPoints = 6UL * 6;  ///< products that stand for its convolution
inline constexpr std::size_t kWinogradChannels = 16;     ///< channels come in multiples of these

/// Point p of [C] channels goes to points + p * stride. `in`: the 36 inputs, row by row.
void winograd_input(const float* const* in, std::size_t channels, float* points, std::size_t stride);

/// relu(outputs + bias) of [C] channels to the 16 places `out`, row by row.
void winograd_output(const float* points, std::size_t stride, const float* bias, std::size_t channels,
                     float* const* out);

}  // namespace tessera::metrics
