// Pooling over windows of one axis. Gradients are gathered: each element of x collects from the windows that
// hold it, in order, so that windows may overlap and threads never meet.
#include <algorithm>
#include <string>

#include "core/autograd/op.h"
#include "core/autograd/rearrange.h"

namespace tessera::ops {
namespace {

struct Pooling {
  AxisView view;
  std::int64_t size = 1, stride = 1, windows = 0;
};

Pooling pooling(const char* op, const Tensor& x, int axis, int size, int stride) {
  if (size < 1 || stride < 1) {
    fail(op, "size and stride >= 1", std::to_string(size) + " and " + std::to_string(stride));
  }
  Pooling p;
  p.view = view_axis(op, x, axis);
  p.size = size;
  p.stride = stride;
  if (p.view.extent < size) {
    fail(op, "at least " + std::to_string(size) + " elements at axis " + std::to_string(axis),
         x.shape().str());
  }
  p.windows = (p.view.extent - size) / stride + 1;
  return p;
}

/// body(window, first row of x in it) for all windows; both count rows of `inner` elements.
template <class Body>
void over_windows(Tape& tape, const Pooling& p, const Body& body) {
  for_rows(tape.pool(), p.view.outer * p.windows, p.view.inner * p.size,
           [&](std::int64_t first, std::int64_t n) {
             for (std::int64_t w = first; w < first + n; ++w) {
               body(w, w / p.windows * p.view.extent + w % p.windows * p.stride);
             }
           });
}

/// dx, where each row of x gets body(window, place of the row in the window, its dx) for the windows that
/// hold it.
template <class Body>
Tensor collect(Tape& tape, const Pooling& p, const Shape& shape, const Body& body) {
  Tensor dx = tape.make(shape);
  float* out = dx.f32();
  for_rows(tape.pool(), p.view.outer * p.view.extent, p.view.inner, [&](std::int64_t first, std::int64_t n) {
    std::fill_n(out + first * p.view.inner, n * p.view.inner, 0.0f);
    for (std::int64_t row = first; row < first + n; ++row) {
      const std::int64_t item = row / p.view.extent, i = row % p.view.extent;
      const std::int64_t from = i < p.size ? 0 : (i - p.size) / p.stride + 1;
      const std::int64_t to = std::min(i / p.stride, p.windows - 1);
      for (std::int64_t w = from; w <= to; ++w) {
        body(item * p.windows + w, i - w * p.stride, out + row * p.view.inner);
      }
    }
  });
  return dx;
}

}  // namespace

Tensor average_pool(Tape& tape, const Tensor& x, int axis, int size, int stride) {
  const Pooling p = pooling("average_pool", x, axis, size, stride);
  const std::int64_t inner = p.view.inner;
  const float share = 1.0f / static_cast<float>(size);
  Tensor y = tape.make(with_extent(x.shape(), axis, p.windows));
  float* out = y.f32();
  over_windows(tape, p, [&](std::int64_t window, std::int64_t row) {
    float* to = out + window * inner;
    std::copy_n(x.f32() + row * inner, inner, to);
    for (std::int64_t i = 1; i < p.size; ++i) {
      const float* from = x.f32() + (row + i) * inner;
      for (std::int64_t c = 0; c < inner; ++c) to[c] += from[c];
    }
    for (std::int64_t c = 0; c < inner; ++c) to[c] *= share;
  });
  return tape.record(y, {x}, [&tape, p, share, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
    const std::int64_t width = p.view.inner;
    inputs.add(0, collect(tape, p, shape, [&](std::int64_t window, std::int64_t, float* to) {
                 const float* from = g.f32() + window * width;
                 for (std::int64_t c = 0; c < width; ++c) to[c] += share * from[c];
               }));
  });
}

Tensor max_pool(Tape& tape, const Tensor& x, int axis, int size, int stride) {
  const Pooling p = pooling("max_pool", x, axis, size, stride);
  const std::int64_t inner = p.view.inner;
  Tensor y = tape.make(with_extent(x.shape(), axis, p.windows));
  Tensor places = tape.make(y.shape());  // which of its window each one is, as std::int32_t
  float* out = y.f32();
  std::int32_t* which = places.as<std::int32_t>();
  over_windows(tape, p, [&](std::int64_t window, std::int64_t row) {
    float* to = out + window * inner;
    std::int32_t* place = which + window * inner;
    std::copy_n(x.f32() + row * inner, inner, to);
    std::fill_n(place, inner, 0);
    for (std::int32_t i = 1; i < size; ++i) {
      const float* from = x.f32() + (row + i) * inner;
      for (std::int64_t c = 0; c < inner; ++c) {
        const bool larger = from[c] > to[c] || from[c] != from[c];  // NaN wins
        to[c] = larger ? from[c] : to[c];
        place[c] = larger ? i : place[c];
      }
    }
  });
  return tape.record(y, {x}, [&tape, p, places, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
    const std::int64_t width = p.view.inner;
    const std::int32_t* chosen = places.as<std::int32_t>();
    inputs.add(0, collect(tape, p, shape, [&](std::int64_t window, std::int64_t place, float* to) {
                 const float* from = g.f32() + window * width;
                 for (std::int64_t c = 0; c < width; ++c) {
                   to[c] += chosen[window * width + c] == place ? from[c] : 0.0f;
                 }
               }));
  });
}

}  // namespace tessera::ops
