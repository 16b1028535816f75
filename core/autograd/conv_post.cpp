// The activation at the end of a convolution, in place. Its gradient follows from its value, so the value
// before it need not be kept.
#include <cmath>
#include <string>

#include "core/activation.h"
#include "core/autograd/conv_operands.h"
#include "core/autograd/conv_products.h"
#include "core/autograd/elementwise_kernels.h"
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
  for_stretches(tape.pool(), y.size(), kStretch, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t count = to_size(end - begin);
    if (options.post == Activation::elu) {
      activate(Activation::elu, values + begin, values + begin, count);
    } else {
      unary(Unary::leaky_relu, values + begin, values + begin, count, options.slope);
    }
  });
}

Tensor post_gradient(Tape& tape, const Conv2dOptions& options, const Tensor& y, const Tensor& gradient) {
  if (options.post == Activation::none) return gradient;
  Tensor result = tape.make(gradient.shape());
  const Slope slope = options.post == Activation::elu ? Slope::elu_y : Slope::step_y;
  for_stretches(tape.pool(), y.size(), kStretch, [&](std::int64_t begin, std::int64_t end) {
    times_slope(slope, y.f32() + begin, gradient.f32() + begin, result.f32() + begin, to_size(end - begin),
                options.slope);
  });
  return result;
}

}  // namespace tessera::ops
