// Causal 1-D convolutions as streaming layers: a CausalWindow lays out contiguous rows, one gemm over
// overlapping rows does the rest (no im2col). Weights come in PyTorch's layouts and are packed once.
#pragma once

#include <span>
#include <vector>

#include "core/causal_window.h"
#include "core/gemm.h"
#include "core/layer.h"

namespace tessera {

struct Conv1dOptions {
  int in_channels = 1;
  int out_channels = 1;
  int kernel = 1;
  int stride = 1;
  int dilation = 1;
  int groups = 1;  ///< divides both channel counts; for groups == channels see DepthwiseConv1d
  PadMode pad = PadMode::zero;
  Activation pre = Activation::none;   ///< applied to the input
  Activation post = Activation::none;  ///< applied to the output
  WeightType weights = WeightType::f32;
};

/// y[t] = bias + W [x[t * stride - left] ... x[t * stride + stride - 1]], left = (kernel - 1) * dilation + 1
/// - stride.
class Conv1d : public Layer {
 public:
  /// weight [out, in / groups, kernel]; bias [out] or empty; snake [in] or empty: Snake as the input's
  /// activation. Throws UsageError when sizes do not fit the options.
  Conv1d(const Conv1dOptions& options, std::span<const float> weight, std::span<const float> bias,
         std::span<const float> snake = {})
      : Conv1d(options, weight, bias, snake, 1) {}

  int in_channels() const override { return options_.in_channels; }
  int out_channels() const override { return options_.out_channels / fold_; }
  std::size_t state_bytes() const override { return window_.state_bytes(); }
  void init_state(std::byte* state) const override { window_.init_state(state); }
  int max_rows(int rows) const override { return window_.max_outputs(rows) * fold_; }
  RowRatio ratio() const override { return {fold_, options_.stride}; }
  int holdback() const override { return window_.holdback(); }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 protected:
  /// The outputs of one window are read as `fold` rows of out_channels / fold.
  Conv1d(const Conv1dOptions& options, std::span<const float> weight, std::span<const float> bias,
         std::span<const float> snake, int fold);

 private:
  Conv1dOptions options_;  // of the convolution that is run: `fold_` times the output channels
  int fold_;
  std::vector<float> snake_;  // before window_, which points at it
  CausalWindow window_;
  std::vector<PackedMatrix> weights_;  // one per group, [kernel * in / groups, out / groups]
  std::vector<float> bias_;
};

/// Transposed convolution, `kernel - stride` outputs cut on the right: every input row gives `stride` output
/// rows. Since output block t only sees the last ceil(kernel / stride) inputs, it is a Conv1d with stride *
/// out channels, folded.
class ConvTranspose1d : public Conv1d {
 public:
  /// options.stride is the upsampling factor; dilation and groups must be 1. weight [in, out, kernel]; bias
  /// [out] or empty.
  ConvTranspose1d(const Conv1dOptions& options, std::span<const float> weight, std::span<const float> bias,
                  std::span<const float> snake = {});
};

/// Every channel has its own kernel. With `transposed`, every input row gives `stride` output rows.
class DepthwiseConv1d : public Layer {
 public:
  /// options.in_channels == out_channels == groups. weight [channels, 1, kernel] in both directions; bias or
  /// empty.
  DepthwiseConv1d(const Conv1dOptions& options, bool transposed, std::span<const float> weight,
                  std::span<const float> bias, std::span<const float> snake = {});

  int in_channels() const override { return options_.in_channels; }
  int out_channels() const override { return options_.in_channels; }
  std::size_t state_bytes() const override { return window_.state_bytes(); }
  void init_state(std::byte* state) const override { window_.init_state(state); }
  int max_rows(int rows) const override { return window_.max_outputs(rows) * factor_; }
  RowRatio ratio() const override { return {factor_, window_.options().stride}; }
  int holdback() const override { return window_.holdback(); }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  Conv1dOptions options_;
  int factor_;  // output rows per window: the stride when transposed, else 1
  std::vector<float> snake_;
  CausalWindow window_;
  std::vector<float> weight_;  // [kernel, channels], or [taps, stride, channels] when transposed
  std::vector<float> bias_;
};

}  // namespace tessera
