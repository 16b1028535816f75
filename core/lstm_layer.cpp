#include "core/lstm_layer.h"

#include <cstring>
#include <string>

#include "core/error.h"
#include "core/linear.h"
#include "core/lstm.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

Lstm::Lstm(int hidden, std::span<const float> weight_ih, std::span<const float> weight_hh,
           std::span<const float> bias_ih, std::span<const float> bias_hh, WeightType type)
    : hidden_(hidden), bias_(bias_ih.begin(), bias_ih.end()) {
  const std::size_t gates = to_size(4 * hidden), weights = gates * to_size(hidden);
  if (weight_ih.size() != weights || weight_hh.size() != weights || bias_ih.size() != gates ||
      bias_hh.size() != gates) {
    fail("lstm",
         "weights [" + std::to_string(gates) + ", " + std::to_string(hidden) + "] and biases of " +
             std::to_string(gates),
         std::to_string(weight_ih.size()) + ", " + std::to_string(weight_hh.size()) + ", " +
             std::to_string(bias_ih.size()) + ", " + std::to_string(bias_hh.size()) + " values");
  }
  for (std::size_t i = 0; i < gates; ++i) bias_[i] += bias_hh[i];
  input_ = PackedMatrix::pack(weight_ih.data(), hidden, 4 * hidden, 1, hidden, type);
  recurrent_ = PackedMatrix::pack(weight_hh.data(), hidden, 4 * hidden, 1, hidden, type);
}

// Hidden vector, then cell vector.
std::size_t Lstm::state_bytes() const {
  return Workspace::padded(2 * to_size(hidden_) * sizeof(float));
}

void Lstm::init_state(std::byte* state) const {
  std::memset(state, 0, state_bytes());
}

std::size_t Lstm::workspace_bytes(int streams, int rows) const {
  return sequences_bytes(streams, rows, hidden_) + sequences_bytes(streams, rows, 4 * hidden_) +
         linear_workspace_bytes(streams * rows);
}

Sequences Lstm::step(Sequences x, States states, StepContext& context) const {
  if (x.channels() != hidden_)
    fail("lstm", "x [rows, " + std::to_string(hidden_) + "]", x.rows.shape().str());
  Workspace& workspace = context.workspace;
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = workspace.mark();
  Sequences y = allocate_sequences(workspace, Workspace::other(side), x.lengths, x.ends, hidden_);

  // The input half for all rows at once; the recurrent half continues each chain, row after row.
  float* gates = workspace.tensor(side, {x.total(), 4 * hidden_}).f32();
  linear({.x = x.rows.f32(),
          .rows = x.total(),
          .weights = &input_,
          .start = GemmStart::bias,
          .bias = bias_.data(),
          .out = gates},
         side, context);
  float* out = y.rows.f32();
  for (int i = 0; i < x.streams(); ++i) {
    float* hidden = states.of<float>(i);
    float* cell = hidden + hidden_;
    for (int t = 0; t < x.lengths[to_size(i)]; ++t, gates += 4 * hidden_, out += hidden_) {
      linear({.x = hidden, .rows = 1, .weights = &recurrent_, .start = GemmStart::output, .out = gates}, side,
             context);
      lstm_cell(gates, cell, hidden, hidden_);
      std::memcpy(out, hidden, to_size(hidden_) * sizeof(float));
    }
  }
  workspace.release(side, mark);
  return y;
}

}  // namespace tessera
