#include "core/conv1d.h"

#include <numeric>
#include <string>

#include "core/depthwise.h"
#include "core/error.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

void expect_size(const char* op, const char* what, std::size_t expected, std::size_t got) {
  if (got != expected)
    fail(op, std::string(what) + " of " + std::to_string(expected) + " values", std::to_string(got));
}

void expect_channels(const char* op, const Sequences& x, int channels) {
  if (x.channels() != channels) fail(op, "x [rows, " + std::to_string(channels) + "]", x.rows.shape().str());
}

CausalWindow make_window(const Conv1dOptions& options, const std::vector<float>& snake) {
  return CausalWindow({.channels = options.in_channels,
                       .extent = (options.kernel - 1) * options.dilation + 1,
                       .stride = options.stride,
                       .pad = options.pad,
                       .pre = options.pre,
                       .snake = snake.empty() ? nullptr : snake.data()});
}

// The window of a transposed convolution: the inputs that one block of `stride` outputs sees.
int transposed_taps(const Conv1dOptions& options) {
  return (options.kernel + options.stride - 1) / options.stride;
}

Conv1dOptions unfolded(Conv1dOptions options) {
  if (options.dilation != 1 || options.groups != 1)
    fail("conv_transpose1d", "dilation 1 and groups 1", "others");
  options.kernel = transposed_taps(options);
  options.out_channels *= options.stride;
  options.stride = 1;
  return options;
}

// [in, out, kernel] -> [stride * out, in, taps]: output j of a block takes kernel element m * stride + j from
// the input m rows back; the oldest input is tap 0. Elements past the kernel are zero.
std::vector<float> unfold(const Conv1dOptions& options, std::span<const float> weight) {
  const int taps = transposed_taps(options), stride = options.stride;
  const int in = options.in_channels, out = options.out_channels, kernel = options.kernel;
  expect_size("conv_transpose1d", "weight", to_size(in) * to_size(out) * to_size(kernel), weight.size());
  std::vector<float> result(to_size(stride) * to_size(out) * to_size(in) * to_size(taps));
  for (int c = 0; c < in; ++c) {
    for (int o = 0; o < out; ++o) {
      for (int k = 0; k < kernel; ++k) {
        const int back = k / stride, j = k % stride;
        const std::size_t row = to_size(j) * to_size(out) + to_size(o);
        result[(row * to_size(in) + to_size(c)) * to_size(taps) + to_size(taps - 1 - back)] =
            weight[(to_size(c) * to_size(out) + to_size(o)) * to_size(kernel) + to_size(k)];
      }
    }
  }
  return result;
}

std::vector<float> repeat(std::span<const float> values, int times) {
  std::vector<float> result;
  for (int i = 0; i < times; ++i) result.insert(result.end(), values.begin(), values.end());
  return result;
}

// Advances the windows of all streams; the runs' memory and the lengths of the output lie on x's side.
struct Windows {
  std::span<CausalWindow::Run> runs;
  std::span<int> lengths;  // outputs per stream
};

Windows advance_all(const CausalWindow& window, const Sequences& x, States states, Workspace& workspace) {
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const std::size_t streams = x.lengths.size(), channels = to_size(x.channels());
  Windows windows{workspace.array<CausalWindow::Run>(side, streams), workspace.array<int>(side, streams)};
  const float* rows = x.rows.f32();
  for (int i = 0; i < x.streams(); ++i) {
    const int length = x.lengths[to_size(i)];
    float* memory = window.transparent()
                        ? nullptr
                        : workspace.array<float>(side, to_size(window.run_rows(length)) * channels).data();
    windows.runs[to_size(i)] = window.advance(rows, length, x.ends[to_size(i)], states.of(i), memory);
    windows.lengths[to_size(i)] = windows.runs[to_size(i)].outputs;
    rows += to_size(length) * channels;
  }
  return windows;
}

std::size_t windows_bytes(const CausalWindow& window, int streams, int rows) {
  const std::size_t memory =
      to_size(window.run_rows(rows)) * to_size(window.options().channels) * sizeof(float);
  return Workspace::padded(to_size(streams) * sizeof(CausalWindow::Run)) +
         Workspace::padded(to_size(streams) * sizeof(int)) + to_size(streams) * Workspace::padded(memory);
}

}  // namespace

Conv1d::Conv1d(const Conv1dOptions& options, std::span<const float> weight, std::span<const float> bias,
               std::span<const float> snake, int fold)
    : options_(options),
      fold_(fold),
      snake_(snake.begin(), snake.end()),
      window_(make_window(options, snake_)),
      bias_(bias.begin(), bias.end()) {
  const int groups = options.groups, kernel = options.kernel;
  if (groups < 1 || options.in_channels % groups || options.out_channels % groups) {
    fail("conv1d", "groups that divide the channels", std::to_string(groups));
  }
  const int in = options.in_channels / groups, out = options.out_channels / groups;
  expect_size("conv1d", "weight", to_size(options.out_channels) * to_size(in) * to_size(kernel),
              weight.size());
  if (!bias.empty()) expect_size("conv1d", "bias", to_size(options.out_channels), bias.size());
  if (!snake.empty()) expect_size("conv1d", "snake", to_size(options.in_channels), snake.size());

  // [out, in, kernel] as [kernel * in, out]: taps outside, channels inside.
  for (int g = 0; g < groups; ++g) {
    const PackedMatrix::Source source{
        .weights = weight.data() + to_size(g) * to_size(out) * to_size(in) * to_size(kernel),
        .inner = in,
        .outer_stride = 1,
        .inner_stride = kernel,
        .column_stride = static_cast<std::ptrdiff_t>(in) * kernel};
    weights_.push_back(PackedMatrix::pack(source, kernel * in, out, options.weights));
  }
}

std::size_t Conv1d::workspace_bytes(int streams, int rows) const {
  const int outputs = window_.max_outputs(rows);
  return windows_bytes(window_, streams, rows) + sequences_bytes(streams, outputs, options_.out_channels) +
         Workspace::padded(to_size(streams) * to_size(outputs) * sizeof(float*));
}

Sequences Conv1d::step(Sequences x, States states, StepContext& context) const {
  expect_channels("conv1d", x, options_.in_channels);
  Workspace& workspace = context.workspace;
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = workspace.mark();
  const Windows windows = advance_all(window_, x, states, workspace);
  const int outputs = std::accumulate(windows.lengths.begin(), windows.lengths.end(), 0);
  for (int& length : windows.lengths) length *= fold_;
  Sequences y =
      allocate_sequences(workspace, Workspace::other(side), windows.lengths, x.ends, out_channels());

  const int groups = options_.groups;
  const std::ptrdiff_t in = options_.in_channels / groups, out = options_.out_channels / groups;
  const std::span<const float*> rows = workspace.array<const float*>(side, to_size(outputs));
  const bool contiguous = options_.dilation == 1 && groups == 1;
  for (int g = 0; g < groups; ++g) {
    auto row = rows.begin();
    for (const CausalWindow::Run& run : windows.runs) {
      for (int t = 0; t < run.outputs; ++t) {
        *row++ = run.rows + static_cast<std::ptrdiff_t>(t) * options_.stride * options_.in_channels + g * in;
      }
    }
    gemm({.rows = rows,
          .segments = contiguous ? 1 : options_.kernel,
          .segment_stride = static_cast<std::ptrdiff_t>(options_.dilation) * options_.in_channels,
          .weights = &weights_[to_size(g)],
          .start = bias_.empty() ? GemmStart::zero : GemmStart::bias,
          .bias = bias_.empty() ? nullptr : bias_.data() + g * out,
          .out = y.rows.f32() + g * out,
          .out_stride = options_.out_channels},
         context.pool);
  }
  if (options_.post != Activation::none) {
    activate(options_.post, y.rows.f32(), y.rows.f32(), static_cast<std::size_t>(y.rows.size()));
  }
  workspace.release(side, mark);
  return y;
}

ConvTranspose1d::ConvTranspose1d(const Conv1dOptions& options, std::span<const float> weight,
                                 std::span<const float> bias, std::span<const float> snake)
    : Conv1d(unfolded(options), unfold(options, weight), repeat(bias, options.stride), snake,
             options.stride) {}

DepthwiseConv1d::DepthwiseConv1d(const Conv1dOptions& options, bool transposed, std::span<const float> weight,
                                 std::span<const float> bias, std::span<const float> snake)
    : options_(options),
      factor_(transposed ? options.stride : 1),
      snake_(snake.begin(), snake.end()),
      window_([&] {
        Conv1dOptions seen = options;
        if (transposed) {
          seen.kernel = transposed_taps(options);
          seen.stride = 1;
        }
        return make_window(seen, snake_);
      }()),
      bias_(bias.begin(), bias.end()) {
  const int channels = options.in_channels, kernel = options.kernel;
  if (options.out_channels != channels || options.groups != channels) {
    fail("depthwise_conv1d", "out_channels = groups = " + std::to_string(channels),
         std::to_string(options.out_channels) + " and " + std::to_string(options.groups));
  }
  if (transposed && options.dilation != 1)
    fail("depthwise_conv1d", "dilation 1", std::to_string(options.dilation));
  expect_size("depthwise_conv1d", "weight", to_size(channels) * to_size(kernel), weight.size());
  if (!bias.empty()) expect_size("depthwise_conv1d", "bias", to_size(channels), bias.size());
  const int taps = transposed ? transposed_taps(options) : kernel;
  weight_.assign(to_size(taps) * to_size(factor_) * to_size(channels), 0.0f);
  for (int c = 0; c < channels; ++c) {
    for (int k = 0; k < kernel; ++k) {
      // Transposed: element m * stride + j reaches m inputs back; the oldest input is tap 0.
      const int row = transposed ? (taps - 1 - k / factor_) * factor_ + k % factor_ : k;
      weight_[to_size(row) * to_size(channels) + to_size(c)] =
          weight[to_size(c) * to_size(kernel) + to_size(k)];
    }
  }
}

std::size_t DepthwiseConv1d::workspace_bytes(int streams, int rows) const {
  return windows_bytes(window_, streams, rows) +
         sequences_bytes(streams, max_rows(rows), options_.in_channels);
}

Sequences DepthwiseConv1d::step(Sequences x, States states, StepContext& context) const {
  expect_channels("depthwise_conv1d", x, options_.in_channels);
  Workspace& workspace = context.workspace;
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = workspace.mark();
  const Windows windows = advance_all(window_, x, states, workspace);
  for (int& length : windows.lengths) length *= factor_;
  Sequences y =
      allocate_sequences(workspace, Workspace::other(side), windows.lengths, x.ends, options_.in_channels);
  const float* bias = bias_.empty() ? nullptr : bias_.data();
  float* out = y.rows.f32();
  for (const CausalWindow::Run& run : windows.runs) {
    const std::size_t outputs = to_size(run.outputs);
    if (factor_ > 1) {
      depthwise_conv_transposed(run.rows, weight_.data(), bias, window_.options().extent, factor_, out,
                                outputs, options_.in_channels);
    } else {
      depthwise_conv(run.rows, weight_.data(), bias, options_.kernel, options_.stride, options_.dilation, out,
                     outputs, options_.in_channels);
    }
    out += outputs * to_size(factor_) * to_size(options_.in_channels);
  }
  if (options_.post != Activation::none) {
    activate(options_.post, y.rows.f32(), y.rows.f32(), static_cast<std::size_t>(y.rows.size()));
  }
  workspace.release(side, mark);
  return y;
}

}  // namespace tessera
