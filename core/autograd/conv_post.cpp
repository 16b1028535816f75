// The activation at the end of a convolution, in place. Its gradient follows from its value, so the value
// before it need not be kept.
#include <cmath>
#include <string>

#include "core/activation.h"
#include "core/autograd/conv_operands.h"
#include "core/autograd/conv_products.h"
#include "core/error.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kStretch = 1 << 14;

}  // namespace

void check_post(const char* op, Activation post, float slope) {
  if (post != Activation::none && post != Activation::elu && post != Activation::leaky_relu) {
    fail(op, "none, elu or leaky_relu after it", "activation " + std::to_string(static_cast<int>(post)));
  }
  // The sign of the value must tell that of its argument.
  if (post == Activation::leaky_relu && !(slope >= 0.0f && std::isfinite(slope))) {
    fail(op, "a slope >= 0", std::to_string(slope));
  }
}

void apply_post(Tape& tape, const Conv2dOptions& options, Tensor& y) {
  if (options.post == Activation::none) return;
  float* const values = y.f32();
  const float slope = options.slope;
  for_stretches(tape.pool(), y.size(), kStretch, [&](std::int64_t begin, std::int64_t end) {
    if (options.post == Activation::elu) {
      activate(Activation::elu, values + begin, values + begin, to_size(end - begin));
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const float scaled = slope * values[i];
      values[i] = values[i] > 0.0f ? values[i] : scaled;
    }
  });
}

Tensor post_gradient(Tape& tape, const Conv2dOptions& options, const Tensor& y, const Tensor& gradient) {
  if (options.post == Activation::none) return gradient;
  Tensor result = tape.make(gradient.shape());
  const float* const values = y.f32();
  const float* const g = gradient.f32();
  float* const out = result.f32();
  const float slope = options.slope;
  for_stretches(tape.pool(), y.size(), kStretch, [&](std::int64_t begin, std::int64_t end) {
    if (options.post == Activation::elu) {
      for (std::int64_t i = begin; i < end; ++i) {
        const float scaled = g[i] * (values[i] + 1.0f);  // exp(x) = y + 1
        out[i] = values[i] > 0.0f ? g[i] : scaled;
      }
      return;
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const float scaled = g[i] * slope;
      out[i] = values[i] > 0.0f ? g[i] : scaled;
    }
  });
  return result;
}

}  // namespace tessera::ops
