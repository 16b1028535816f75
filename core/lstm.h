// The element-wise part of an LSTM cell; its two matrix products are gemms.
#pragma once

#include <cstddef>

namespace tessera {

/// gates [4 * hidden] in PyTorch's order i, f, g, o (already W x + U h + biases): cell = sigmoid(f) cell +
/// sigmoid(i) tanh(g); hidden state out = sigmoid(o) tanh(cell). `cell` and `out` are [hidden]; the same bits
/// on every instruction set.
void lstm_cell(const float* gates, float* cell, float* out, int hidden);

}  // namespace tessera
