// Attention around its kernels: checks, the layout of a stream's state (position, then the rings of keys,
// then those of values, one per key/value head), shares of the work for threads.
#include "transformer/attention.h"

#include <cmath>
#include <cstring>
#include <string>

#include "core/error.h"
#include "transformer/attention_cpu.h"

namespace tessera {
namespace {

constexpr std::size_t kHeaderBytes = 64;  // the position, and room that keeps the rings aligned

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// A block of new positions may overwrite only what its own first row no longer sees.
int ring_capacity(const AttentionOptions& options) {
  const int needed = options.window - 1 + kAttentionBlock;
  return (needed + kKeyGroup - 1) / kKeyGroup * kKeyGroup;
}

// Floats of the keys, or of the values, of one head.
std::size_t ring_size(const AttentionOptions& options) {
  return to_size(ring_capacity(options)) * to_size(options.head_dim);
}

std::size_t scores_size(const AttentionOptions& options) {
  return to_size(kQueryTile) * to_size(score_length(ring_capacity(options)));
}

}  // namespace

void check_attention(const AttentionOptions& options) {
  if (options.heads < 1 || options.kv_heads < 1 || options.heads % options.kv_heads != 0) {
    fail("attention", "heads that are a positive multiple of kv_heads",
         std::to_string(options.heads) + " heads, " + std::to_string(options.kv_heads) + " kv_heads");
  }
  if (options.head_dim < 16 || options.head_dim % 16 != 0) {
    fail("attention", "head_dim that is a positive multiple of 16", std::to_string(options.head_dim));
  }
  constexpr int kMaxWindow = 1 << 24;
  if (options.window < 1 || options.window > kMaxWindow) {
    fail("attention", "window in 1 .. " + std::to_string(kMaxWindow), std::to_string(options.window));
  }
}

std::size_t attention_state_bytes(const AttentionOptions& options) {
  const std::size_t floats = 2 * to_size(options.kv_heads) * ring_size(options);
  return kHeaderBytes + Workspace::padded(floats * sizeof(float));
}

void init_attention_state(const AttentionOptions& options, std::byte* state) {
  std::memset(state, 0, attention_state_bytes(options));
}

std::int64_t attention_position(const std::byte* state) {
  std::int64_t position;
  std::memcpy(&position, state, sizeof(position));
  return position;
}

void set_attention_position(std::byte* state, std::int64_t position) {
  if (position < 0) fail("attention", "position >= 0", std::to_string(position));
  std::memcpy(state, &position, sizeof(position));
}

std::size_t attention_workspace_bytes(const AttentionOptions& options, int streams) {
  const std::size_t tasks = to_size(streams) * to_size(options.kv_heads);
  return Workspace::padded(to_size(streams) * sizeof(std::size_t)) +
         Workspace::padded(tasks * scores_size(options) * sizeof(float));
}

void attention(const AttentionOptions& options, const float* qkv, std::span<const int> lengths, States states,
               float* out, Workspace::Side side, StepContext& context) {
  const Workspace::Mark mark = context.workspace.mark();
  const int kv_heads = options.kv_heads, head_dim = options.head_dim, group = options.heads / kv_heads;
  const int streams = static_cast<int>(lengths.size()), tasks = streams * kv_heads;
  const auto starts = context.workspace.array<std::size_t>(side, lengths.size());
  const auto scores = context.workspace.array<float>(side, to_size(tasks) * scores_size(options));
  std::size_t total = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    starts[i] = total;
    total += to_size(lengths[i]);
  }

  const int qkv_channels = options.qkv_channels(), out_channels = options.out_channels();
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  // A task is one key/value head with all its query heads: it alone writes the keys and values that it reads.
  context.pool.parallel_for(tasks, [&](int task) {
    const int stream = task / kv_heads, head = task % kv_heads;
    if (lengths[to_size(stream)] == 0) return;
    const std::size_t start = starts[to_size(stream)];
    const float* const row = qkv + start * to_size(qkv_channels);
    std::byte* const state = states.of(stream);
    float* const rings = reinterpret_cast<float*>(state + kHeaderBytes);
    attend_cpu({.q = row + head * group * head_dim,
                .k = row + (options.heads + head) * head_dim,
                .v = row + (options.heads + kv_heads + head) * head_dim,
                .out = out + start * to_size(out_channels) + head * group * head_dim,
                .qkv_stride = qkv_channels,
                .out_stride = out_channels,
                .rows = lengths[to_size(stream)],
                .group = group,
                .head_dim = head_dim,
                .window = options.window,
                .capacity = ring_capacity(options),
                .scale = scale,
                .position = attention_position(state),
                .keys = rings + to_size(head) * ring_size(options),
                .values = rings + to_size(kv_heads + head) * ring_size(options),
                .scores = scores.data() + to_size(task) * scores_size(options)});
  });
  for (int i = 0; i < streams; ++i) {
    std::byte* const state = states.of(i);
    set_attention_position(state, attention_position(state) + lengths[to_size(i)]);
  }
  context.workspace.release(side, mark);
}

}  // namespace tessera
