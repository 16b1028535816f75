// Gain and shape apart, band by band: each band of a row of a transform is divided by its root mean square,
// whose logarithm becomes one more channel. Quiet and loud bands then look alike to a network and its
// quantizer, errors scale with the sound, and a decoder that joins them keeps the energy of every band
// however coarse the shape. (Gain-shape quantization: Sabin and Gray 1984; by bands: CELT, RFC 6716.)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/layer.h"

namespace tessera {

/// Added to the mean square on splitting: bands of digital silence have a gain of 1e-3 and a shape of zeros.
inline constexpr float kGainFloor = 1e-6f;
/// The same on joining, where shapes come from a network.
inline constexpr float kShapeFloor = 1e-4f;
/// Largest log gain that join_gain takes at its word, either way: what a decoder makes of damaged tokens
/// stays finite.
inline constexpr float kGainLimit = 16.0f;

/// Bands are given by their widths, in order; together they are all channels, n of them in m bands.

/// x [rows, n] -> y [rows, n + m]: x / g of its band, then log g of each band, g = sqrt(mean x^2 +
/// kGainFloor).
void split_gain(const float* x, float* y, std::size_t rows, std::span<const int> bands);
/// x [rows, n + m] -> y [rows, n]: of each band, x / sqrt(mean x^2 + kShapeFloor) times exp of its log gain
/// (within kGainLimit).
void join_gain(const float* x, float* y, std::size_t rows, std::span<const int> bands);

/// Channels of all bands.
int channels_of(std::span<const int> bands);

/// split_gain as a layer.
class SplitGain : public Layer {
 public:
  explicit SplitGain(std::vector<int> bands) : bands_(std::move(bands)), channels_(channels_of(bands_)) {}

  int in_channels() const override { return channels_; }
  int out_channels() const override { return channels_ + static_cast<int>(bands_.size()); }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  std::vector<int> bands_;
  int channels_;
};

/// join_gain as a layer.
class JoinGain : public Layer {
 public:
  explicit JoinGain(std::vector<int> bands) : bands_(std::move(bands)), channels_(channels_of(bands_)) {}

  int in_channels() const override { return channels_ + static_cast<int>(bands_.size()); }
  int out_channels() const override { return channels_; }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  std::vector<int> bands_;
  int channels_;
};

}  // namespace tessera
