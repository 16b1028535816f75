#include "core/autograd/gain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/activation.h"
#include "core/autograd/op.h"
#include "core/gain.h"
#include "core/norm.h"

namespace tessera::ops {
namespace {

using Bands = std::vector<int>;

void expect_bands(const char* op, const Tensor& x, std::span<const int> bands, std::int64_t channels) {
  for (const int width : bands) {
    if (width < 1) fail(op, "bands of at least one channel", std::to_string(width));
  }
  if (bands.empty() || ops::channels_of(op, x) != channels) {
    fail(op, "x [..., " + std::to_string(channels) + "] in at least one band", x.shape().str());
  }
}

Shape with_channels(const Shape& shape, std::int64_t channels) {
  return with_extent(shape, shape.rank() - 1, channels);
}

// body(first row, number of rows) for blocks of rows.
template <class Body>
void for_gains(Tape& tape, const Tensor& x, const Body& body) {
  const std::int64_t channels = x.dim(x.shape().rank() - 1);
  for_rows(tape.pool(), rows_of(x, channels), channels, body);
}

// The band of shape s and log gain l that split_gain gave: dL/dx = (ds + s (dl - s . ds) / n) / exp(l).
void split_gradient(const float* s, float log_gain, const float* ds, float dl, int n, float* dx) {
  float inverse = -log_gain;
  activate(Activation::exp, &inverse, &inverse, 1);
  const float pull = (dl - fixed_dot(s, ds, static_cast<std::size_t>(n))) / static_cast<float>(n);
  for (int i = 0; i < n; ++i) dx[i] = (ds[i] + s[i] * pull) * inverse;
}

// The band x of join_gain with y = x E / r, r^2 = mean x^2 + floor, E = exp(l): dL/dx = (dy - x (x . dy) / (n
// r^2)) E / r, dL/dl = y . dy.
float join_gradient(const float* x, float log_gain, const float* dy, int n, float* dx) {
  const std::size_t count = static_cast<std::size_t>(n);
  const float square = fixed_dot(x, x, count) / static_cast<float>(n) + kShapeFloor;
  const float along = fixed_dot(x, dy, count);
  float gain = std::clamp(log_gain, -kGainLimit, kGainLimit);
  activate(Activation::exp, &gain, &gain, 1);
  gain /= std::sqrt(square);
  const float pull = along / (static_cast<float>(n) * square);
  for (int i = 0; i < n; ++i) dx[i] = (dy[i] - x[i] * pull) * gain;
  return std::abs(log_gain) <= kGainLimit ? along * gain : 0.0f;
}

}  // namespace

Tensor split_gain(Tape& tape, const Tensor& x, std::span<const int> bands) {
  const int n = tessera::channels_of(bands), all = n + static_cast<int>(bands.size());
  expect_bands("split_gain", x, bands, n);
  Tensor y = tape.make(with_channels(x.shape(), all));
  for_gains(tape, x, [&, from = x.f32(), to = y.f32()](std::int64_t first, std::int64_t count) {
    tessera::split_gain(from + first * n, to + first * all, static_cast<std::size_t>(count), bands);
  });
  return tape.record(y, {x},
                     [&tape, x = x.detached(), y, n, all, bands = Bands(bands.begin(), bands.end())](
                         const Tensor& g, InputGradients& inputs) {
                       Tensor dx = tape.make(x.shape());
                       for_gains(tape, x, [&, out = dx.f32()](std::int64_t first, std::int64_t count) {
                         for (std::int64_t row = first; row < first + count; ++row) {
                           const float *s = y.f32() + row * all, *ds = g.f32() + row * all;
                           std::int64_t at = 0, band = n;
                           for (const int width : bands) {
                             split_gradient(s + at, s[band], ds + at, ds[band], width, out + row * n + at);
                             at += width;
                             ++band;
                           }
                         }
                       });
                       inputs.add(0, dx);
                     });
}

Tensor join_gain(Tape& tape, const Tensor& x, std::span<const int> bands) {
  const int n = tessera::channels_of(bands), all = n + static_cast<int>(bands.size());
  expect_bands("join_gain", x, bands, all);
  Tensor y = tape.make(with_channels(x.shape(), n));
  for_gains(tape, x, [&, from = x.f32(), to = y.f32()](std::int64_t first, std::int64_t count) {
    tessera::join_gain(from + first * all, to + first * n, static_cast<std::size_t>(count), bands);
  });
  return tape.record(y, {x},
                     [&tape, x = x.detached(), n, all, bands = Bands(bands.begin(), bands.end())](
                         const Tensor& g, InputGradients& inputs) {
                       Tensor dx = tape.make(x.shape());
                       for_gains(tape, x, [&, out = dx.f32()](std::int64_t first, std::int64_t count) {
                         for (std::int64_t row = first; row < first + count; ++row) {
                           const float *u = x.f32() + row * all, *dy = g.f32() + row * n;
                           float* du = out + row * all;
                           std::int64_t at = 0, band = n;
                           for (const int width : bands) {
                             du[band] = join_gradient(u + at, u[band], dy + at, width, du + at);
                             at += width;
                             ++band;
                           }
                         }
                       });
                       inputs.add(0, dx);
                     });
}

}  // namespace tessera::ops
