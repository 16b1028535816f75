// One pre-norm transformer layer and a stack of them, as streaming layers (Vaswani et al., arXiv 1706.03762;
// pre-norm, arXiv 2002.04745): x += Wo attention(rotate(Wqkv norm(x))); x += W2 f(W1 norm(x)). Attention is
// causal within a sliding window. Leaves out: gated feed-forward, a norm after the last layer, cross
// attention. A layer scale is a factor per output channel: whoever loads the weights multiplies it into Wo
// and W2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/activation.h"
#include "core/gemm.h"
#include "core/layer.h"
#include "transformer/attention.h"
#include "transformer/rope.h"

namespace tessera {

enum class NormKind : std::uint8_t { layer_norm, rms_norm };

struct TransformerOptions {
  int channels = 16;  ///< of x
  int hidden = 64;    ///< of the feed-forward part
  AttentionOptions attention;
  double theta = 10000;  ///< RoPE base
  RopeLayout rope = RopeLayout::half;
  NormKind norm = NormKind::layer_norm;
  float norm_eps = 1e-5f;
  Activation activation = Activation::gelu;
};

struct NormWeights {
  std::vector<float> weight;  ///< [channels]
  std::vector<float> bias;    ///< [channels] or empty; always empty for rms_norm
};

struct LinearWeights {
  PackedMatrix weight;      ///< [in, out]
  std::vector<float> bias;  ///< [out] or empty
};

struct TransformerLayerWeights {
  NormWeights norm1;
  LinearWeights
      qkv;  ///< [channels, attention.qkv_channels()]: query heads, key heads, value heads side by side
  LinearWeights out;  ///< [attention.out_channels(), channels]
  NormWeights norm2;
  LinearWeights up;    ///< [channels, hidden]
  LinearWeights down;  ///< [hidden, channels]
};

/// The state is that of its attention (attention_position(), set_attention_position()).
class TransformerLayer : public Layer {
 public:
  /// Throws UsageError when the weights do not fit the options.
  TransformerLayer(const TransformerOptions& options, TransformerLayerWeights weights);

  const TransformerOptions& options() const { return options_; }
  int in_channels() const override { return options_.channels; }
  int out_channels() const override { return options_.channels; }
  std::size_t state_bytes() const override { return attention_state_bytes(options_.attention); }
  void init_state(std::byte* state) const override { init_attention_state(options_.attention, state); }
  std::size_t workspace_bytes(int streams, int rows) const override;
  /// Changes x in place.
  Sequences step(Sequences x, States states, StepContext& context) const override;

  /// The rotations of x's rows [total, head_dim], in the workspace on x's side. They depend on the streams'
  /// positions only: layers with equal options can share them.
  std::span<const float> rotations(const Sequences& x, States states, StepContext& context) const;
  /// step() with the rotations at hand.
  void apply(const Sequences& x, States states, std::span<const float> rotations, StepContext& context) const;

 private:
  void attend(const Sequences& x, States states, std::span<const float> rotations, std::span<float> normed,
              std::span<const float*> rows, StepContext& context) const;
  void feed_forward(const Sequences& x, std::span<float> normed, std::span<const float*> rows,
                    StepContext& context) const;
  void normalize(const NormWeights& norm, const Sequences& x, float* out, ThreadPool& pool) const;

  TransformerOptions options_;
  TransformerLayerWeights weights_;
  Rope rope_;
};

/// Layers of equal options one after the other; so are their states.
class Transformer : public Layer {
 public:
  /// At least one layer. Throws UsageError when weights do not fit the options.
  Transformer(const TransformerOptions& options, std::vector<TransformerLayerWeights> layers);

  int in_channels() const override { return layers_.front().in_channels(); }
  int out_channels() const override { return layers_.front().out_channels(); }
  std::size_t state_bytes() const override { return layers_.size() * layers_.front().state_bytes(); }
  void init_state(std::byte* state) const override;
  std::size_t workspace_bytes(int streams, int rows) const override;
  /// Changes x in place.
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  std::vector<TransformerLayer> layers_;
};

}  // namespace tessera
