#include "core/autograd/gain.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/activation.h"
#include "core/autograd/op.h"
#include "core/gain.h"
#include "core/norm.h"

namespace tessera::ops {
namespace {

// Channels of the last axis, at least `least`.
int channels_from(const char* op, const Tensor& x, int least) {
  const std::int64_t channels = channels_of(op, x);
  if (channels < least)
    fail(op, "x [..., C] with at least " + std::to_string(least) + " channels", x.shape().str());
  return static_cast<int>(channels);
}

Shape with_channels(const Shape& shape, int channels) {
  return with_extent(shape, shape.rank() - 1, channels);
}

// body(first row, number of rows) for blocks of rows.
template <class Body>
void for_gains(Tape& tape, const Tensor& x, const Body& body) {
  const std::int64_t channels = x.dim(x.shape().rank() - 1);
  for_rows(tape.pool(), rows_of(x, channels), channels, body);
}

}  // namespace

Tensor split_gain(Tape& tape, const Tensor& x) {
  const int c = channels_from("split_gain", x, 1);
  Tensor y = tape.make(with_channels(x.shape(), c + 1));
  for_gains(tape, x, [&, from = x.f32(), to = y.f32()](std::int64_t first, std::int64_t count) {
    tessera::split_gain(from + first * c, to + first * (c + 1), static_cast<std::size_t>(count), c);
  });
  // With shape s, log gain l and n channels: dL/dx = (ds + s (dl - s . ds) / n) / exp(l).
  return tape.record(y, {x}, [&tape, x = x.detached(), y, c](const Tensor& g, InputGradients& inputs) {
    Tensor dx = tape.make(x.shape());
    for_gains(tape, x, [&, out = dx.f32()](std::int64_t first, std::int64_t count) {
      for (std::int64_t row = first; row < first + count; ++row) {
        const float* s = y.f32() + row * (c + 1);
        const float* d = g.f32() + row * (c + 1);
        float inverse = -s[c];
        activate(Activation::exp, &inverse, &inverse, 1);
        const float pull = (d[c] - fixed_dot(s, d, static_cast<std::size_t>(c))) / static_cast<float>(c);
        for (int i = 0; i < c; ++i) out[row * c + i] = (d[i] + s[i] * pull) * inverse;
      }
    });
    inputs.add(0, dx);
  });
}

Tensor join_gain(Tape& tape, const Tensor& x) {
  const int c = channels_from("join_gain", x, 2) - 1;
  Tensor y = tape.make(with_channels(x.shape(), c));
  for_gains(tape, x, [&, from = x.f32(), to = y.f32()](std::int64_t first, std::int64_t count) {
    tessera::join_gain(from + first * (c + 1), to + first * c, static_cast<std::size_t>(count), c);
  });
  return tape.record(y, {x}, [&tape, x = x.detached(), y, c](const Tensor& g, InputGradients& inputs) {
    Tensor dx = tape.make(x.shape());
    for_gains(tape, x, [&, out = dx.f32()](std::int64_t first, std::int64_t count) {
      for (std::int64_t row = first; row < first + count; ++row) {
        const float* d = g.f32() + row * c;
        const float log_gain = x.f32()[row * (c + 1) + c];
        float gain = std::clamp(log_gain, -kGainLimit, kGainLimit);
        activate(Activation::exp, &gain, &gain, 1);
        for (int i = 0; i < c; ++i) out[row * (c + 1) + i] = d[i] * gain;
        const bool within = std::abs(log_gain) <= kGainLimit;
        out[row * (c + 1) + c] = within ? fixed_dot(d, y.f32() + row * c, static_cast<std::size_t>(c)) : 0.0f;
      }
    });
    inputs.add(0, dx);
  });
}

}  // namespace tessera::ops
