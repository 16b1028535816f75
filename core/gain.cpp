#include "core/gain.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/activation.h"
#include "core/norm.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// 1 / sqrt(mean x^2 + floor)
float inverse_rms(const float* x, int count, float floor) {
  return 1.0f / std::sqrt(fixed_dot(x, x, to_size(count)) / static_cast<float>(count) + floor);
}

using RowFunction = void (*)(const float* x, float* y, std::size_t rows, std::span<const int> bands);

Sequences apply(RowFunction f, const Sequences& x, std::span<const int> bands, int out_channels,
                StepContext& context) {
  Workspace& workspace = context.workspace;
  const Workspace::Side side = Workspace::other(workspace.side_of(x.rows.raw()));
  Sequences y = allocate_sequences(workspace, side, x.lengths, x.ends, out_channels);
  f(x.rows.f32(), y.rows.f32(), to_size(x.total()), bands);
  return y;
}

}  // namespace

int channels_of(std::span<const int> bands) {
  return std::accumulate(bands.begin(), bands.end(), 0);
}

void split_gain(const float* x, float* y, std::size_t rows, std::span<const int> bands) {
  const int channels = channels_of(bands);
  for (std::size_t r = 0; r < rows; ++r) {
    float* gains = y + channels;
    for (const int width : bands) {
      const float inverse = inverse_rms(x, width, kGainFloor);
      for (int c = 0; c < width; ++c) y[c] = x[c] * inverse;
      *gains++ = inverse;
      x += width;
      y += width;
    }
    activate(Activation::log, y, y, bands.size());
    for (std::size_t b = 0; b < bands.size(); ++b) y[b] = -y[b];
    y += bands.size();
  }
}

void join_gain(const float* x, float* y, std::size_t rows, std::span<const int> bands) {
  const int channels = channels_of(bands);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* gains = x + channels;
    for (const int width : bands) {
      float gain = std::clamp(*gains++, -kGainLimit, kGainLimit);
      activate(Activation::exp, &gain, &gain, 1);
      gain *= inverse_rms(x, width, kShapeFloor);
      for (int c = 0; c < width; ++c) y[c] = x[c] * gain;
      x += width;
      y += width;
    }
    x += bands.size();
  }
}

std::size_t SplitGain::workspace_bytes(int streams, int rows) const {
  return sequences_bytes(streams, rows, out_channels());
}

Sequences SplitGain::step(Sequences x, States, StepContext& context) const {
  return apply(split_gain, x, bands_, out_channels(), context);
}

std::size_t JoinGain::workspace_bytes(int streams, int rows) const {
  return sequences_bytes(streams, rows, channels_);
}

Sequences JoinGain::step(Sequences x, States, StepContext& context) const {
  return apply(join_gain, x, bands_, channels_, context);
}

}  // namespace tessera
