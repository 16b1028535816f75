// Causal sliding-window attention with a ring of keys and values per stream (Longformer's window, arXiv
// 2004.05150; grouped queries, arXiv 2305.13245). Position i sees the positions j with 0 <= i - j < window.
// The order of arithmetic follows absolute positions only (docs/determinism.md): no bit depends on how a
// stream is cut into steps or on where the ring wraps. Leaves out: projections, rotary embedding
// (transformer/rope.h), attention without a window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/layer.h"

namespace tessera {

struct AttentionOptions {
  int heads = 1;
  int kv_heads = 1;   ///< divides heads: query head h uses key and value head h / (heads / kv_heads)
  int head_dim = 16;  ///< a multiple of 16
  int window = 1;     ///< keys that a query sees, itself included

  /// Floats of one row of q, k and v side by side.
  int qkv_channels() const { return (heads + 2 * kv_heads) * head_dim; }
  /// Floats of one output row.
  int out_channels() const { return heads * head_dim; }
};

/// Throws UsageError unless the options can work.
void check_attention(const AttentionOptions& options);

/// Bytes of one stream's state: position, keys and values.
std::size_t attention_state_bytes(const AttentionOptions& options);
/// Writes the state of a stream at position 0 that has seen nothing.
void init_attention_state(const AttentionOptions& options, std::byte* state);
/// Positions that the stream has seen; the next row has this position.
std::int64_t attention_position(const std::byte* state);
/// Moves the stream to another position, e.g. to join one in the middle. What it sees of earlier positions is
/// what the state's slots hold: zeros after init_attention_state.
void set_attention_position(std::byte* state, std::int64_t position);

/// Scratch that attention() takes for `streams` streams.
std::size_t attention_workspace_bytes(const AttentionOptions& options, int streams);
/// qkv [sum of lengths, qkv_channels()]: per row all query heads, all key heads, all value heads, q and k
/// already rotated. out [sum of lengths, out_channels()]. Stores the new keys and values and advances each
/// stream's position by its rows. Scratch goes on `side` of the workspace and is released.
void attention(const AttentionOptions& options, const float* qkv, std::span<const int> lengths, States states,
               float* out, Workspace::Side side, StepContext& context);

}  // namespace tessera
