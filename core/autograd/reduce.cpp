// Sums and what is made of them: checks, what the gradient keeps, and the sharing of rows over threads. The
// arithmetic is in sums.cpp and rows_cpu.cpp.
#include "core/autograd/reduce.h"

#include <algorithm>
#include <string>

#include "core/autograd/elementwise.h"
#include "core/autograd/op.h"
#include "core/autograd/row_kernels.h"
#include "core/autograd/sums.h"
#include "core/norm.h"

namespace tessera::ops {
namespace {

/// Row i of the result is g[i] throughout, times `factor`.
Tensor spread(Tape& tape, const Tensor& g, const Shape& shape, float factor = 1.0f) {
  Tensor y = tape.make(shape);
  float* out = y.f32();
  const std::int64_t rows = g.size(), width = rows > 0 ? shape.size() / rows : 0;
  for_blocks(tape.pool(), shape.size(), kBlock, [&](std::int64_t begin, std::int64_t n) {
    for (std::int64_t i = begin; i < begin + n;) {
      const std::int64_t row = i / width, end = std::min((row + 1) * width, begin + n);
      std::fill(out + i, out + end, factor * g.f32()[row]);
      i = end;
    }
  });
  return y;
}

/// body(first row, rows) in blocks of whole rows.
template <class Body>
void over_rows(Tape& tape, const Tensor& x, std::int64_t channels, const Body& body) {
  for_rows(tape.pool(), rows_of(x, channels), channels,
           [&](std::int64_t first, std::int64_t n) { body(first, static_cast<std::size_t>(n)); });
}

}  // namespace

Tensor sum(Tape& tape, const Tensor& x) {
  expect_f32("sum", "x", x);
  return tape.record(row_sums(tape, x, Tensor(), 1), {x},
                     [&tape, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
                       inputs.add(0, spread(tape, g, shape));
                     });
}

Tensor mean(Tape& tape, const Tensor& x) {
  expect_f32("mean", "x", x);
  if (x.size() == 0) fail("mean", "at least one element", x.shape().str());
  const float count = static_cast<float>(x.size());
  Tensor y = row_sums(tape, x, Tensor(), 1);
  *y.f32() /= count;
  return tape.record(y, {x}, [&tape, count, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, spread(tape, g, shape, 1.0f / count));
  });
}

Tensor sum_items(Tape& tape, const Tensor& x) {
  expect_f32("sum_items", "x", x);
  if (x.shape().rank() < 1) fail("sum_items", "x [M, ...]", x.shape().str());
  return tape.record(row_sums(tape, x, Tensor(), x.dim(0)), {x},
                     [&tape, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
                       inputs.add(0, spread(tape, g, shape));
                     });
}

Tensor sum_last(Tape& tape, const Tensor& x) {
  channels_of("sum_last", x);
  const int rank = x.shape().rank();
  std::int64_t extents[Shape::kMaxRank] = {1};
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < rank; ++i) rows *= extents[i] = x.dim(i);
  const Shape shape(std::span<const std::int64_t>(extents, static_cast<std::size_t>(std::max(rank - 1, 1))));
  return tape.record(row_sums(tape, x, Tensor(), rows).reshaped(shape), {x},
                     [&tape, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
                       inputs.add(0, spread(tape, g, shape));
                     });
}

Tensor sum_rows(Tape& tape, const Tensor& x) {
  const std::int64_t channels = channels_of("sum_rows", x);
  return tape.record(column_sums(tape, x, Tensor(), channels), {x},
                     [&tape, channels, shape = x.shape()](const Tensor& g, InputGradients& inputs) {
                       Tensor dx = tape.make(shape);
                       float* out = dx.f32();
                       over_rows(tape, dx, channels, [&](std::int64_t first, std::size_t rows) {
                         for (std::size_t t = 0; t < rows; ++t) {
                           std::copy_n(g.f32(), channels,
                                       out + (first + static_cast<std::int64_t>(t)) * channels);
                         }
                       });
                       inputs.add(0, dx);
                     });
}

Tensor l2_normalize(Tape& tape, const Tensor& x, float eps) {
  const std::int64_t channels = channels_of("l2_normalize", x);
  const auto width = static_cast<std::size_t>(channels);
  Tensor y = tape.make(x.shape()), inverse = tape.make({rows_of(x, channels)});
  float *out = y.f32(), *factors = inverse.f32();
  over_rows(tape, x, channels, [&](std::int64_t t, std::size_t rows) {
    l2_normalize_rows(x.f32() + t * channels, eps, out + t * channels, factors + t, rows, width);
  });
  return tape.record(y, {x}, [&tape, y, inverse, channels](const Tensor& g, InputGradients& inputs) {
    Tensor dx = tape.make(g.shape());
    float* to = dx.f32();
    over_rows(tape, g, channels, [&](std::int64_t t, std::size_t rows) {
      const std::int64_t at = t * channels;
      l2_normalize_gradient(g.f32() + at, y.f32() + at, inverse.f32() + t, to + at, rows,
                            static_cast<std::size_t>(channels));
    });
    inputs.add(0, dx);
  });
}

Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps) {
  const std::int64_t channels = channels_of("layer_norm", x);
  expect_shape("layer_norm", "weight", weight, {channels});
  expect_shape("layer_norm", "bias", bias, {channels});
  Tensor y = tape.make(x.shape());
  float* out = y.f32();
  over_rows(tape, x, channels, [&](std::int64_t t, std::size_t rows) {
    tessera::layer_norm(x.f32() + t * channels, weight.f32(), bias.f32(), eps, out + t * channels, rows,
                        static_cast<int>(channels));
  });
  return tape.record(y, {x, weight, bias},
                     [&tape, x = x.detached(), weight = weight.detached(), eps, channels](
                         const Tensor& g, InputGradients& inputs) {
                       if (inputs.wants(2)) inputs.add(2, column_sums(tape, g, Tensor(), channels));
                       if (!inputs.wants(0) && !inputs.wants(1)) return;
                       Tensor dx = tape.make(g.shape()), normal = tape.make(g.shape());
                       float *to = dx.f32(), *normalized = normal.f32();
                       over_rows(tape, g, channels, [&](std::int64_t t, std::size_t rows) {
                         const std::int64_t at = t * channels;
                         layer_norm_gradient(g.f32() + at, x.f32() + at, weight.f32(), eps, to + at,
                                             normalized + at, rows, static_cast<std::size_t>(channels));
                       });
                       inputs.add(0, dx);
                       if (inputs.wants(1)) inputs.add(1, column_sums(tape, g, normal, channels));
                     });
}

Tensor softmax(Tape& tape, const Tensor& x) {
  const std::int64_t channels = channels_of("softmax", x);
  Tensor y = tape.make(x.shape());
  float* out = y.f32();
  over_rows(tape, x, channels, [&](std::int64_t t, std::size_t rows) {
    std::copy_n(x.f32() + t * channels, static_cast<std::int64_t>(rows) * channels, out + t * channels);
    tessera::softmax(out + t * channels, rows, static_cast<int>(channels));
  });
  return tape.record(y, {x}, [&tape, y, channels](const Tensor& g, InputGradients& inputs) {
    Tensor dx = tape.make(g.shape());
    float* to = dx.f32();
    over_rows(tape, g, channels, [&](std::int64_t t, std::size_t rows) {
      const std::int64_t at = t * channels;
      softmax_gradient(g.f32() + at, y.f32() + at, to + at, rows, static_cast<std::size_t>(channels));
    });
    inputs.add(0, dx);
  });
}

Tensor cross_entropy(Tape& tape, const Tensor& logits, std::span<const std::int32_t> targets) {
  expect_f32("cross_entropy", "logits", logits);
  if (logits.shape().rank() != 2 || logits.size() == 0) {
    fail("cross_entropy", "logits [M, K]", logits.shape().str());
  }
  const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
  if (std::ssize(targets) != rows) {
    fail("cross_entropy", std::to_string(rows) + " targets", std::to_string(targets.size()));
  }
  std::int64_t counted = 0;
  for (const std::int32_t target : targets) {
    if (target < -1 || target >= classes) {
      fail("cross_entropy", "targets from -1 to " + std::to_string(classes - 1), std::to_string(target));
    }
    counted += target >= 0;
  }
  Tensor p = tape.make(logits.shape()), losses = tape.make({rows});
  float *probabilities = p.f32(), *each = losses.f32();
  over_rows(tape, logits, classes, [&](std::int64_t t, std::size_t n) {
    cross_entropy_rows(logits.f32() + t * classes, targets.data() + t, probabilities + t * classes, each + t,
                       n, static_cast<std::size_t>(classes));
  });
  const float weight = counted > 0 ? 1.0f / static_cast<float>(counted) : 0.0f;
  Tensor y = row_sums(tape, losses, Tensor(), 1);
  *y.f32() *= weight;
  if (!logits.recorded()) return y;
  for (std::int64_t t = 0; t < rows; ++t) {  // softmax - 1 at the target is the gradient but for the weight
    if (targets[static_cast<std::size_t>(t)] >= 0) {
      probabilities[t * classes + targets[static_cast<std::size_t>(t)]] -= 1.0f;
    }
  }
  return tape.record(y, {logits}, [&tape, p, weight](const Tensor& g, InputGradients& inputs) {
    inputs.add(0, affine(tape, p, weight * *g.f32(), -0.0f));
  });
}

}  // namespace tessera::ops
