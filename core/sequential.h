// Layers made of layers: a chain, a residual connection, and a chain that runs in short pieces so that what
// it works on stays in the cache (exact, because any split gives the same bits).
#pragma once

#include <memory>
#include <vector>

#include "core/activation.h"
#include "core/layer.h"

namespace tessera {

/// Runs its layers one after the other.
class Sequential : public Layer {
 public:
  Sequential() = default;

  /// Throws UsageError when the layer's input does not fit what comes before.
  Sequential& add(std::unique_ptr<Layer> layer);
  template <class L, class... Args>
  Sequential& add(Args&&... args) {
    return add(std::unique_ptr<Layer>(std::make_unique<L>(std::forward<Args>(args)...)));
  }
  std::size_t size() const { return layers_.size(); }
  const Layer& layer(std::size_t i) const { return *layers_[i].layer; }

  int in_channels() const override;
  int out_channels() const override;
  std::size_t state_bytes() const override { return state_bytes_; }
  void init_state(std::byte* state) const override;
  int max_rows(int rows) const override;
  RowRatio ratio() const override;
  int holdback() const override;
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  struct Placed {
    std::unique_ptr<Layer> layer;
    std::size_t offset;  // of its state
  };
  std::vector<Placed> layers_;
  std::size_t state_bytes_ = 0;
};

/// y = skip(x) + inner(x), skip being the identity unless given. Rows that inner holds back at the start of a
/// stream wait on the skip side, too. The first layer of inner must not work in place.
class Residual : public Layer {
 public:
  explicit Residual(std::unique_ptr<Layer> inner, std::unique_ptr<Layer> skip = nullptr);

  int in_channels() const override { return inner_->in_channels(); }
  int out_channels() const override { return inner_->out_channels(); }
  std::size_t state_bytes() const override;
  void init_state(std::byte* state) const override;
  int max_rows(int rows) const override { return inner_->max_rows(rows); }
  RowRatio ratio() const override { return inner_->ratio(); }
  int holdback() const override { return inner_->holdback(); }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  void add_waiting(const Sequences& skipped, Sequences& y, States states) const;

  std::unique_ptr<Layer> inner_, skip_;
  std::size_t skip_offset_, queue_offset_;
};

/// Runs `inner` on at most `rows` rows of one stream at a time.
class Blocked : public Layer {
 public:
  Blocked(std::unique_ptr<Layer> inner, int rows) : inner_(std::move(inner)), rows_(rows) {}

  int in_channels() const override { return inner_->in_channels(); }
  int out_channels() const override { return inner_->out_channels(); }
  std::size_t state_bytes() const override { return inner_->state_bytes(); }
  void init_state(std::byte* state) const override { inner_->init_state(state); }
  int max_rows(int rows) const override;
  RowRatio ratio() const override { return inner_->ratio(); }
  int holdback() const override { return inner_->holdback(); }
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  std::unique_ptr<Layer> inner_;
  int rows_;
};

/// y = f(x), in place.
class ActivationLayer : public Layer {
 public:
  ActivationLayer(Activation f, int channels) : f_(f), channels_(channels) {}

  int in_channels() const override { return channels_; }
  int out_channels() const override { return channels_; }
  std::size_t workspace_bytes(int, int) const override { return 0; }
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  Activation f_;
  int channels_;
};

/// y[t, c] = scale[c] x[t, c], in place.
class ScaleChannels : public Layer {
 public:
  explicit ScaleChannels(std::vector<float> scale) : scale_(std::move(scale)) {}

  int in_channels() const override { return static_cast<int>(scale_.size()); }
  int out_channels() const override { return in_channels(); }
  std::size_t workspace_bytes(int, int) const override { return 0; }
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  std::vector<float> scale_;
};

}  // namespace tessera
