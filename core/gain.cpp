#include "core/gain.h"

#include <algorithm>
#include <cmath>

#include "core/activation.h"
#include "core/norm.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

using RowFunction = void (*)(const float* x, float* y, std::size_t rows, int channels);

Sequences apply(RowFunction f, const Sequences& x, int channels, int out_channels, StepContext& context) {
  Workspace& workspace = context.workspace;
  const Workspace::Side side = Workspace::other(workspace.side_of(x.rows.raw()));
  const Sequences y = allocate_sequences(workspace, side, x.lengths, x.ends, out_channels);
  f(x.rows.f32(), const_cast<float*>(y.rows.f32()), to_size(x.total()), channels);
  return y;
}

}  // namespace

void split_gain(const float* x, float* y, std::size_t rows, int channels) {
  for (std::size_t r = 0; r < rows; ++r, x += channels, y += channels + 1) {
    const float mean = fixed_dot(x, x, to_size(channels)) / static_cast<float>(channels);
    const float gain = std::sqrt(mean + kGainFloor), inverse = 1.0f / gain;
    for (int c = 0; c < channels; ++c) y[c] = x[c] * inverse;
    activate(Activation::log, &gain, y + channels, 1);
  }
}

void join_gain(const float* x, float* y, std::size_t rows, int channels) {
  for (std::size_t r = 0; r < rows; ++r, x += channels + 1, y += channels) {
    float gain = std::clamp(x[channels], -kGainLimit, kGainLimit);
    activate(Activation::exp, &gain, &gain, 1);
    for (int c = 0; c < channels; ++c) y[c] = x[c] * gain;
  }
}

std::size_t SplitGain::workspace_bytes(int streams, int rows) const {
  return sequences_bytes(streams, rows, channels_ + 1);
}

Sequences SplitGain::step(Sequences x, States, StepContext& context) const {
  return apply(split_gain, x, channels_, channels_ + 1, context);
}

std::size_t JoinGain::workspace_bytes(int streams, int rows) const {
  return sequences_bytes(streams, rows, channels_);
}

Sequences JoinGain::step(Sequences x, States, StepContext& context) const {
  return apply(join_gain, x, channels_, channels_, context);
}

}  // namespace tessera
