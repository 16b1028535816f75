// Gain and shape apart: a row of a transform is divided by its root mean square, whose logarithm becomes one
// more channel. Quiet and loud rows then look alike to a network and its quantizer, and errors scale with the
// sound. (Gain-shape quantization: Sabin and Gray 1984.)
#pragma once

#include <cstddef>
#include <vector>

#include "core/layer.h"

namespace tessera {

/// Added to the mean square: rows of digital silence have a gain of 1e-3 and a shape of zeros.
inline constexpr float kGainFloor = 1e-6f;
/// Largest log gain that join_gain takes at its word, either way: what a decoder makes of damaged tokens
/// stays finite.
inline constexpr float kGainLimit = 16.0f;

/// x [rows, channels] -> y [rows, channels + 1]: x / g, then log g, g = sqrt(mean x^2 + kGainFloor).
void split_gain(const float* x, float* y, std::size_t rows, int channels);
/// x [rows, channels + 1] -> y [rows, channels]: the first `channels` times exp of the last (within
/// kGainLimit).
void join_gain(const float* x, float* y, std::size_t rows, int channels);

/// split_gain as a layer.
class SplitGain : public Layer {
 public:
  explicit SplitGain(int channels) : channels_(channels) {}

  int in_channels() const override { return channels_; }
  int out_channels() const override { return channels_ + 1; }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  int channels_;
};

/// join_gain as a layer.
class JoinGain : public Layer {
 public:
  explicit JoinGain(int channels) : channels_(channels) {}

  int in_channels() const override { return channels_ + 1; }
  int out_channels() const override { return channels_; }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  int channels_;
};

}  // namespace tessera
