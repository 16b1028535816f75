// Long short-term memory as a streaming layer (PyTorch's gates and weights), possibly several stacked.
#pragma once

#include <span>
#include <vector>

#include "core/gemm.h"
#include "core/layer.h"

namespace tessera {

/// One LSTM of `hidden` units over x [T, hidden], zero initial state. Stack them in a Sequential.
class Lstm : public Layer {
 public:
  /// weight_ih, weight_hh [4 * hidden, hidden]; bias_ih, bias_hh [4 * hidden]: added to one another.
  Lstm(int hidden, std::span<const float> weight_ih, std::span<const float> weight_hh,
       std::span<const float> bias_ih, std::span<const float> bias_hh, WeightType type);

  int in_channels() const override { return hidden_; }
  int out_channels() const override { return hidden_; }
  std::size_t state_bytes() const override;
  void init_state(std::byte* state) const override;
  std::size_t workspace_bytes(int streams, int rows) const override;
  Sequences step(Sequences x, States states, StepContext& context) const override;

 private:
  int hidden_;
  PackedMatrix input_, recurrent_;  // [hidden, 4 * hidden]
  std::vector<float> bias_;
};

}  // namespace tessera
