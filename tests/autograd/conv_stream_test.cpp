// Convolutions with gradients have the bits of the streaming layers; transposed ones agree with plain loops.
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/conv1d.h"
#include "tests/autograd/conv_cases.h"

namespace tessera {
namespace {

using namespace conv_testing;

// One stream through a layer, in one step.
std::vector<float> stream(const Layer& layer, const Tensor& x) {
  const int rows = static_cast<int>(x.dim(1));
  ThreadPool pool;
  std::vector<std::byte> state(layer.state_bytes() + 1);
  layer.init_state(state.data());
  Workspace workspace(sequences_bytes(1, rows, layer.in_channels()) + layer.workspace_bytes(1, rows));
  StepContext context{workspace, pool};
  const bool end = false;
  std::byte* block = state.data();
  Sequences in =
      allocate_sequences(workspace, Workspace::Side::low, {&rows, 1}, {&end, 1}, layer.in_channels());
  std::memcpy(in.rows.raw(), x.raw(), x.bytes());
  const Sequences y = layer.step(in, States({&block, 1}), context);
  return {y.rows.f32(), y.rows.f32() + y.rows.size()};
}

// w [K, C, O] in a layer's layout: [O, C, K], or [C, O, K] when transposed.
std::vector<float> layer_weight(const Tensor& w, bool transposed) {
  const std::int64_t kernel = w.dim(0), in = w.dim(1), out = w.dim(2);
  std::vector<float> result(static_cast<std::size_t>(w.size()));
  for (std::int64_t k = 0; k < kernel; ++k) {
    for (std::int64_t c = 0; c < in; ++c) {
      for (std::int64_t o = 0; o < out; ++o) {
        const std::int64_t pair = transposed ? c * out + o : o * in + c;
        result[static_cast<std::size_t>(pair * kernel + k)] = w.f32()[(k * in + c) * out + o];
      }
    }
  }
  return result;
}

std::span<const float> values(const Tensor& t) {
  return {t.f32(), static_cast<std::size_t>(t.size())};
}

void expect_same_bits(const std::vector<float>& expected, const Tensor& got) {
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(got.size()));
  EXPECT_EQ(std::memcmp(expected.data(), got.raw(), got.bytes()), 0);
}

TEST(Conv, HasTheBitsOfTheStreamingLayer) {
  struct Streaming {
    int in, out, kernel, stride, dilation;
    Activation post;
  };
  for (const Streaming& s : {Streaming{3, 20, 7, 1, 1, Activation::none},
                             {16, 33, 3, 1, 9, Activation::elu},
                             {5, 16, 8, 4, 1, Activation::none},
                             {4, 1, 3, 1, 1, Activation::elu},
                             {1, 24, 7, 1, 1, Activation::leaky_relu}}) {
    SCOPED_TRACE(std::to_string(s.kernel) + "/" + std::to_string(s.stride) + "/" +
                 std::to_string(s.dilation));
    const Tensor x = random_tensor({1, 40, s.in}, 5), w = random_tensor({s.kernel, s.in, s.out}, 6);
    const Tensor bias = random_tensor({s.out}, 7);
    Conv1dOptions options;
    options.in_channels = s.in, options.out_channels = s.out, options.kernel = s.kernel;
    options.stride = s.stride, options.dilation = s.dilation, options.post = s.post;
    const Conv1d layer(options, layer_weight(w, false), values(bias));
    ThreadPool pool(2);
    Tape tape(pool);
    ops::Conv1dOptions same;
    same.stride = s.stride, same.dilation = s.dilation, same.post = s.post;
    same.pad_left = (s.kernel - 1) * s.dilation + 1 - s.stride;
    expect_same_bits(stream(layer, x), ops::conv1d(tape, x, w, bias, same));
  }
}

TEST(Conv, TransposedHasTheBitsOfTheStreamingLayer) {
  for (const auto& [kernel, stride] : {std::pair{4, 2}, {6, 3}, {5, 5}, {3, 1}}) {
    SCOPED_TRACE(std::to_string(kernel) + "/" + std::to_string(stride));
    const Tensor x = random_tensor({1, 23, 6}, 5), w = random_tensor({kernel, 6, 7}, 6);
    const Tensor bias = random_tensor({7}, 7);
    Conv1dOptions options;
    options.in_channels = 6, options.out_channels = 7, options.kernel = kernel, options.stride = stride;
    const ConvTranspose1d layer(options, layer_weight(w, true), values(bias));
    ThreadPool pool(2);
    Tape tape(pool);
    expect_same_bits(stream(layer, x), ops::conv_transpose1d(tape, x, w, bias, stride));
  }
}

// y[t stride + j] = bias + sum over m, c of x[t - m, c] w[m stride + j, c]
TEST(Conv, TransposedAgreesWithPlainLoops) {
  for (const auto& [kernel, stride] : {std::pair{4, 2}, {6, 3}, {5, 5}, {3, 1}, {16, 8}}) {
    SCOPED_TRACE(std::to_string(kernel) + "/" + std::to_string(stride));
    const std::int64_t items = 2, rows = 19, in = 5, out = 3;
    const Tensor x = parameter(random_tensor({items, rows, in}, 1));
    const Tensor w = parameter(random_tensor({kernel, in, out}, 2)),
                 bias = parameter(random_tensor({out}, 3));
    ThreadPool pool(2);
    Tape tape(pool);
    const Tensor y = ops::conv_transpose1d(tape, x, w, bias, stride);
    ASSERT_EQ(y.shape(), (Shape{items, rows * stride, out}));
    const Tensor dy = output_gradient(y.shape());
    Doubles expected(static_cast<std::size_t>(y.size())), dx(static_cast<std::size_t>(x.size()));
    Doubles dw(static_cast<std::size_t>(w.size())), dbias(static_cast<std::size_t>(out));
    std::size_t at = 0;
    for (std::int64_t b = 0; b < items; ++b) {
      for (std::int64_t t = 0; t < rows * stride; ++t) {
        for (std::int64_t o = 0; o < out; ++o, ++at) {
          expected[at] = bias.f32()[o];
          dbias[static_cast<std::size_t>(o)] += dy.f32()[at];
          for (std::int64_t m = 0; m <= t / stride && m * stride + t % stride < kernel; ++m) {
            for (std::int64_t c = 0; c < in; ++c) {
              const auto from = static_cast<std::size_t>((b * rows + t / stride - m) * in + c);
              const auto weight = static_cast<std::size_t>(((m * stride + t % stride) * in + c) * out + o);
              expected[at] += static_cast<double>(x.f32()[from]) * w.f32()[weight];
              dx[from] += static_cast<double>(dy.f32()[at]) * w.f32()[weight];
              dw[weight] += static_cast<double>(dy.f32()[at]) * x.f32()[from];
            }
          }
        }
      }
    }
    tape.backward(y, dy);
    expect_near("y", y, expected, 2e-6);
    expect_near("dx", gradient_of(x), dx, 2e-6);
    expect_near("dw", gradient_of(w), dw, 2e-6);
    expect_near("dbias", gradient_of(bias), dbias, 2e-6);
  }
}

}  // namespace
}  // namespace tessera
