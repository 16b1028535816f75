// The streaming layers against plain double-precision definitions over the whole sequence, and the contracts
// over each.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/conv1d.h"
#include "core/error.h"
#include "core/lstm_layer.h"
#include "core/sequential.h"
#include "tests/core/contracts.h"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

double elu(double x) {
  return x > 0 ? x : std::expm1(x);
}

// One channel-last sequence as PyTorch's F.pad would pad it, with EnCodec's rule for short inputs.
struct Padded {
  Doubles rows;
  int count;
};

Padded pad(const Doubles& x, int rows, int channels, int left, int right, PadMode mode) {
  const int extra =
      mode == PadMode::reflect && rows <= std::max(left, right) ? std::max(left, right) - rows + 1 : 0;
  const int extended = rows + extra;
  Padded result{{}, left + rows + right};
  for (int t = -left; t < rows + right; ++t) {
    int from = t;
    bool zero = false;
    if (mode == PadMode::reflect) {
      if (from < 0) from = -from;
      if (from >= extended) from = 2 * (extended - 1) - from;
      zero = from >= rows;
    } else if (mode == PadMode::replicate) {
      from = std::clamp(from, 0, rows - 1);
    } else {
      zero = from < 0 || from >= rows;
    }
    for (int c = 0; c < channels; ++c) result.rows.push_back(zero ? 0.0 : x[to_size(from * channels + c)]);
  }
  return result;
}

Doubles plain_conv(const Conv1dOptions& options, const Floats& weight, const Floats& bias, const Floats& x) {
  const int in = options.in_channels, out = options.out_channels, group_in = in / options.groups,
            group_out = out / options.groups;
  const int rows = static_cast<int>(x.size()) / in, extent = (options.kernel - 1) * options.dilation + 1;
  Doubles input(x.begin(), x.end());
  if (options.pre == Activation::elu) std::transform(input.begin(), input.end(), input.begin(), elu);
  const int right = (options.stride - rows % options.stride) % options.stride;
  const Padded padded = pad(input, rows, in, extent - options.stride, right, options.pad);
  Doubles y;
  for (int start = 0; start + extent <= padded.count; start += options.stride) {
    for (int o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : bias[to_size(o)];
      for (int c = 0; c < group_in; ++c) {
        for (int k = 0; k < options.kernel; ++k) {
          sum += padded.rows[to_size((start + k * options.dilation) * in + o / group_out * group_in + c)] *
                 weight[to_size((o * group_in + c) * options.kernel + k)];
        }
      }
      y.push_back(sum);
    }
  }
  return y;
}

// [in, out / groups, kernel] weights; kernel - stride outputs cut on the right.
Doubles plain_transposed(const Conv1dOptions& options, const Floats& weight, const Floats& bias,
                         const Floats& x) {
  const int in = options.in_channels, out = options.out_channels, group_in = in / options.groups,
            group_out = out / options.groups;
  const int rows = static_cast<int>(x.size()) / in;
  Doubles y(to_size((rows * options.stride + options.kernel) * out));
  for (int t = 0; t < rows; ++t) {
    for (int c = 0; c < in; ++c) {
      for (int o = 0; o < group_out; ++o) {
        for (int k = 0; k < options.kernel; ++k) {
          y[to_size((t * options.stride + k) * out + c / group_in * group_out + o)] +=
              static_cast<double>(x[to_size(t * in + c)]) *
              weight[to_size((c * group_out + o) * options.kernel + k)];
        }
      }
    }
  }
  y.resize(to_size(rows * options.stride * out));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias.empty() ? 0 : bias[i % to_size(out)];
  return y;
}

void expect_near(const Floats& got, const Doubles& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
}

Floats weights_of(int count, std::uint64_t seed) {
  return random_floats(to_size(count), seed);
}

const Conv1dOptions kConvs[] = {
    {.in_channels = 3, .out_channels = 5, .kernel = 1},
    {.in_channels = 3, .out_channels = 5, .kernel = 1, .pre = Activation::elu},
    {.in_channels = 1, .out_channels = 16, .kernel = 7},
    {.in_channels = 4, .out_channels = 6, .kernel = 3, .dilation = 4},
    {.in_channels = 4, .out_channels = 6, .kernel = 8, .stride = 4},
    {.in_channels = 6, .out_channels = 4, .kernel = 3, .groups = 2, .pre = Activation::elu},
    {.in_channels = 4, .out_channels = 4, .kernel = 5, .stride = 2, .dilation = 2, .groups = 2},
    {.in_channels = 5, .out_channels = 3, .kernel = 4, .stride = 2, .pad = PadMode::replicate},
    {.in_channels = 1, .out_channels = 4, .kernel = 7, .pad = PadMode::reflect},
    {.in_channels = 4,
     .out_channels = 3,
     .kernel = 8,
     .stride = 4,
     .pad = PadMode::reflect,
     .pre = Activation::elu},
    {.in_channels = 2, .out_channels = 3, .kernel = 3, .dilation = 3, .pad = PadMode::reflect},
};

TEST(Conv1d, EqualsPlainConvolutionAtEveryLength) {
  for (const Conv1dOptions& options : kConvs) {
    SCOPED_TRACE(&options - kConvs);
    const Floats weight =
        weights_of(options.out_channels * options.in_channels / options.groups * options.kernel, 1);
    const Floats bias = weights_of(options.out_channels, 2);
    const Conv1d layer(options, weight, bias), unbiased(options, weight, {});
    for (int rows = 1; rows <= 40; ++rows) {
      SCOPED_TRACE(rows);
      const Floats x = weights_of(rows * options.in_channels, 3);
      expect_near(run_layer(layer, x, {1 << 20}), plain_conv(options, weight, bias, x));
      expect_near(run_layer(unbiased, x, {3}), plain_conv(options, weight, {}, x));
    }
    EXPECT_TRUE(run_layer(layer, {}, {1}).empty());
    expect_contracts(layer, 60);
  }
}

TEST(Conv1d, SnakeEntersBeforeTheKernel) {
  const Conv1dOptions options{.in_channels = 3, .out_channels = 2, .kernel = 3};
  const Floats weight = weights_of(18, 1), alpha{0.5f, 1.0f, 2.0f};
  const Conv1d layer(options, weight, {}, alpha);
  Floats x = weights_of(60, 3), snaked = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = alpha[i % 3], s = std::sin(a * x[i]);
    snaked[i] = static_cast<float>(x[i] + s * s / (a + 1e-9));
  }
  expect_near(run_layer(layer, x, {7}), plain_conv(options, weight, {}, snaked));
  expect_contracts(layer, 40);
}

TEST(Conv1d, ReducedPrecisionStaysCloseAndKeepsTheContracts) {
  const Conv1dOptions options{.in_channels = 32, .out_channels = 24, .kernel = 4, .stride = 2};
  const Floats weight = weights_of(32 * 24 * 4, 1);
  const Floats x = weights_of(32 * 50, 2);
  const Doubles exact = plain_conv(options, weight, {}, x);
  for (const auto& [type, tolerance] : {std::pair{WeightType::bf16, 0.05}, std::pair{WeightType::i8, 0.08}}) {
    Conv1dOptions reduced = options;
    reduced.weights = type;
    const Conv1d layer(reduced, weight, {});
    expect_near(run_layer(layer, x, {5}), exact, tolerance);
    expect_contracts(layer, 40);
  }
}

TEST(Conv1d, RefusesSizesThatDoNotFit) {
  const Floats six = weights_of(6, 1);
  EXPECT_THROW(Conv1d({.in_channels = 2, .out_channels = 2, .kernel = 2}, six, {}), UsageError);
  EXPECT_THROW(Conv1d({.in_channels = 3, .out_channels = 2, .kernel = 1}, six, six), UsageError);
  EXPECT_THROW(Conv1d({.in_channels = 3, .out_channels = 2, .kernel = 1, .groups = 2}, six, {}), UsageError);
  EXPECT_THROW(Conv1d({.in_channels = 3, .out_channels = 2, .kernel = 1, .stride = 2}, six, {}), UsageError);
}

TEST(ConvTranspose1d, EqualsPlainTransposedConvolution) {
  const Conv1dOptions cases[] = {{.in_channels = 4, .out_channels = 3, .kernel = 8, .stride = 4},
                                 {.in_channels = 2, .out_channels = 1, .kernel = 5, .stride = 2},
                                 {.in_channels = 3, .out_channels = 2, .kernel = 3, .stride = 3},
                                 {.in_channels = 3, .out_channels = 2, .kernel = 3, .stride = 1}};
  for (const Conv1dOptions& options : cases) {
    SCOPED_TRACE(&options - cases);
    const Floats weight = weights_of(options.in_channels * options.out_channels * options.kernel, 4);
    const Floats bias = weights_of(options.out_channels, 5);
    const ConvTranspose1d layer(options, weight, bias);
    const Floats x = weights_of(17 * options.in_channels, 6);
    expect_near(run_layer(layer, x, {3}), plain_transposed(options, weight, bias, x));
    expect_contracts(layer, 33);
  }
  const Conv1dOptions dilated{.kernel = 3, .stride = 2, .dilation = 2};
  EXPECT_THROW(ConvTranspose1d(dilated, weights_of(3, 1), {}), UsageError);
}

TEST(DepthwiseConv1d, EqualsPlainGroupedConvolutionBothWays) {
  const Conv1dOptions down{.in_channels = 19,
                           .out_channels = 19,
                           .kernel = 4,
                           .stride = 2,
                           .groups = 19,
                           .pad = PadMode::replicate};
  const Conv1dOptions dilated{.in_channels = 19,
                              .out_channels = 19,
                              .kernel = 3,
                              .dilation = 3,
                              .groups = 19,
                              .pre = Activation::elu};
  const Conv1dOptions up{.in_channels = 19, .out_channels = 19, .kernel = 5, .stride = 2, .groups = 19};
  const Floats weight = weights_of(19 * 5, 1), bias = weights_of(19, 2), x = weights_of(19 * 21, 3);
  for (const Conv1dOptions& options : {down, dilated}) {
    const Floats own(weight.begin(), weight.begin() + 19 * options.kernel);
    const DepthwiseConv1d layer(options, false, own, bias);
    expect_near(run_layer(layer, x, {4}), plain_conv(options, own, bias, x));
    expect_contracts(layer, 30);
  }
  const DepthwiseConv1d layer(up, true, weight, bias);
  expect_near(run_layer(layer, x, {4}), plain_transposed(up, weight, bias, x));
  expect_contracts(layer, 30);
  EXPECT_THROW(DepthwiseConv1d({.in_channels = 2, .out_channels = 4, .groups = 2}, false, weight, {}),
               UsageError);
}

TEST(Lstm, EqualsPlainRecurrence) {
  constexpr int kHidden = 20, kRows = 30;
  const Floats ih = weights_of(4 * kHidden * kHidden, 1), hh = weights_of(4 * kHidden * kHidden, 2);
  const Floats bias_ih = weights_of(4 * kHidden, 3), bias_hh = weights_of(4 * kHidden, 4),
               x = weights_of(kRows * kHidden, 5);
  const Lstm layer(kHidden, ih, hh, bias_ih, bias_hh, WeightType::f32);
  Doubles want, hidden(kHidden), cell(kHidden);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int t = 0; t < kRows; ++t) {
    Doubles gates(4 * kHidden);
    for (std::size_t g = 0; g < gates.size(); ++g) {
      gates[g] = static_cast<double>(bias_ih[g]) + bias_hh[g];
      for (std::size_t c = 0; c < kHidden; ++c)
        gates[g] += ih[g * kHidden + c] * x[to_size(t) * kHidden + c] + hh[g * kHidden + c] * hidden[c];
    }
    for (std::size_t c = 0; c < kHidden; ++c) {
      cell[c] = sigmoid(gates[kHidden + c]) * cell[c] + sigmoid(gates[c]) * std::tanh(gates[2 * kHidden + c]);
      hidden[c] = sigmoid(gates[3 * kHidden + c]) * std::tanh(cell[c]);
    }
    want.insert(want.end(), hidden.begin(), hidden.end());
  }
  expect_near(run_layer(layer, x, {4}), want, 2e-5);
  expect_contracts(layer, 25);
  EXPECT_THROW(Lstm(kHidden, ih, hh, bias_ih, {}, WeightType::f32), UsageError);
}

std::unique_ptr<Layer> conv(Conv1dOptions options, std::uint64_t seed) {
  const Floats weight = weights_of(options.out_channels * options.in_channels * options.kernel, seed);
  return std::make_unique<Conv1d>(options, weight, weights_of(options.out_channels, seed + 1));
}

// A small SEANet-like stack with everything that holds rows back.
std::unique_ptr<Sequential> stack(PadMode mode) {
  auto inner = std::make_unique<Sequential>();
  inner->add(
      conv({.in_channels = 8, .out_channels = 4, .kernel = 3, .pad = mode, .pre = Activation::elu}, 10));
  inner->add(conv({.in_channels = 4, .out_channels = 8, .pad = mode, .pre = Activation::elu}, 12));
  auto all = std::make_unique<Sequential>();
  all->add(conv({.in_channels = 1, .out_channels = 8, .kernel = 7, .pad = mode}, 14));
  all->add<Residual>(std::move(inner), conv({.in_channels = 8, .out_channels = 8, .pad = mode}, 16));
  all->add(conv(
      {.in_channels = 8, .out_channels = 12, .kernel = 6, .stride = 3, .pad = mode, .pre = Activation::elu},
      18));
  all->add<ActivationLayer>(Activation::tanh, 12);
  all->add<ScaleChannels>(weights_of(12, 20));
  return all;
}

TEST(Sequential, StacksKeepTheContracts) {
  for (const PadMode mode : {PadMode::zero, PadMode::replicate, PadMode::reflect}) {
    const auto layers = stack(mode);
    EXPECT_EQ(layers->ratio().up, 1);
    EXPECT_EQ(layers->ratio().down, 3);
    for (int rows = 1; rows < 40; ++rows) {
      EXPECT_EQ(run_layer(*layers, weights_of(rows, 5), {2}).size(), to_size((rows + 2) / 3 * 12)) << rows;
    }
    expect_contracts(*layers, 50);
  }
}

TEST(Sequential, HoldsBackUntilEveryLayerHasItsPad) {
  const auto layers = stack(PadMode::reflect);
  EXPECT_EQ(layers->holdback(), 6);  // the first kernel's pad; the others need fewer rows by then
  EXPECT_TRUE(run_layer(*layers, weights_of(6, 1), {1}, 1, false).empty());
  EXPECT_FALSE(run_layer(*layers, weights_of(7, 1), {1}, 1, false).empty());
}

TEST(Sequential, RefusesChannelsThatDoNotFit) {
  Sequential layers;
  layers.add(conv({.in_channels = 1, .out_channels = 8}, 1));
  EXPECT_THROW(layers.add(conv({.in_channels = 4, .out_channels = 8}, 1)), UsageError);
}

TEST(Residual, AddsTheInput) {
  const Conv1dOptions options{.in_channels = 3, .out_channels = 3, .kernel = 5, .pad = PadMode::reflect};
  const Residual layer(conv(options, 1));
  const Floats x = weights_of(3 * 20, 3);
  Doubles want = plain_conv(options, weights_of(45, 1), weights_of(3, 2), x);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += x[i];
  expect_near(run_layer(layer, x, {1}), want);
  expect_contracts(layer, 30);
  EXPECT_THROW(Residual(conv({.in_channels = 3, .out_channels = 4}, 1)), UsageError);
}

TEST(Blocked, EqualsItsInside) {
  for (const PadMode mode : {PadMode::zero, PadMode::reflect}) {
    const Blocked layer(stack(mode), 5);
    const Floats x = weights_of(64, 1);
    EXPECT_EQ(run_layer(layer, x, {1 << 20}), run_layer(*stack(mode), x, {1 << 20}));
    expect_contracts(layer, 50);
  }
}

}  // namespace
}  // namespace tessera::test
