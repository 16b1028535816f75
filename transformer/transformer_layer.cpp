// The layer as a sequence of whole-batch products; only attention looks at single streams. Its scratch is one
// buffer of normalized rows, and behind it either q, k, v and answers, or the hidden rows.
#include "transformer/transformer_layer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/norm.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

const AttentionOptions& checked(const AttentionOptions& options) {
  check_attention(options);
  return options;
}

void check_vector(const std::string& name, const std::vector<float>& vector, int size, bool optional) {
  if (vector.size() == to_size(size) || (optional && vector.empty())) return;
  fail("transformer layer", name + " of " + std::to_string(size) + (optional ? " or 0" : "") + " values",
       std::to_string(vector.size()));
}

void check_norm(const std::string& name, const NormWeights& norm, const TransformerOptions& options) {
  check_vector(name + " weight", norm.weight, options.channels, false);
  check_vector(name + " bias", norm.bias, options.norm == NormKind::layer_norm ? options.channels : 0, true);
}

void check_linear(const std::string& name, const LinearWeights& linear, int in, int out) {
  const Shape expected{in, out}, got{linear.weight.k(), linear.weight.n()};
  if (got != expected) fail("transformer layer", name + " weight " + expected.str(), got.str());
  check_vector(name + " bias", linear.bias, out, true);
}

// Calls body(first row, rows) over parts of `total` rows; a few rows stay on the caller's thread.
template <class Body>
void for_rows(ThreadPool& pool, int total, const Body& body) {
  constexpr int kPart = 16;
  pool.parallel_for((total + kPart - 1) / kPart,
                    [&](int part) { body(part * kPart, std::min(kPart, total - part * kPart)); });
}

// out [rows, n] = x [rows, k] W + bias; `rows` is room for the row pointers.
void apply_linear(const LinearWeights& linear, const float* x, std::span<const float*> rows, float* out,
                  ThreadPool& pool) {
  for (std::size_t m = 0; m < rows.size(); ++m) rows[m] = x + m * to_size(linear.weight.k());
  gemm({.rows = rows,
        .weights = &linear.weight,
        .start = linear.bias.empty() ? GemmStart::zero : GemmStart::bias,
        .bias = linear.bias.data(),
        .out = out,
        .out_stride = linear.weight.n()},
       pool);
}

std::size_t float_bytes(std::size_t rows, int channels) {
  return Workspace::padded(rows * to_size(channels) * sizeof(float));
}

}  // namespace

TransformerLayer::TransformerLayer(const TransformerOptions& options, TransformerLayerWeights weights)
    : options_(options),
      weights_(std::move(weights)),
      rope_(checked(options.attention).head_dim, options.theta, options.rope) {
  const AttentionOptions& heads = options.attention;
  check_norm("norm1", weights_.norm1, options);
  check_linear("qkv", weights_.qkv, options.channels, heads.qkv_channels());
  check_linear("out", weights_.out, heads.out_channels(), options.channels);
  check_norm("norm2", weights_.norm2, options);
  check_linear("up", weights_.up, options.channels, options.hidden);
  check_linear("down", weights_.down, options.hidden, options.channels);
}

std::size_t TransformerLayer::workspace_bytes(int streams, int rows) const {
  const std::size_t total = to_size(streams) * to_size(rows);
  const AttentionOptions& heads = options_.attention;
  const std::size_t attend = float_bytes(total, heads.qkv_channels()) +
                             float_bytes(total, heads.out_channels()) +
                             attention_workspace_bytes(heads, streams);
  const std::size_t feed_forward = float_bytes(total, options_.hidden);
  return float_bytes(total, heads.head_dim) + float_bytes(total, options_.channels) +
         Workspace::padded(total * sizeof(const float*)) + std::max(attend, feed_forward);
}

Sequences TransformerLayer::step(Sequences x, States states, StepContext& context) const {
  const Workspace::Side side = context.workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = context.workspace.mark();
  apply(x, states, rotations(x, states, context), context);
  context.workspace.release(side, mark);
  return x;
}

std::span<const float> TransformerLayer::rotations(const Sequences& x, States states,
                                                   StepContext& context) const {
  const Workspace::Side side = context.workspace.side_of(x.rows.raw());
  const std::size_t size = to_size(rope_.size());
  const auto rotations = context.workspace.array<float>(side, to_size(x.total()) * size);
  float* next = rotations.data();
  for (int i = 0; i < x.streams(); ++i) {
    const int length = x.lengths[to_size(i)];
    const std::int64_t position = attention_position(states.of(i));
    for_rows(context.pool, length, [&](int first, int count) {
      for (int m = first; m < first + count; ++m) rope_.rotation(position + m, next + to_size(m) * size);
    });
    next += to_size(length) * size;
  }
  return rotations;
}

void TransformerLayer::apply(const Sequences& x, States states, std::span<const float> rotations,
                             StepContext& context) const {
  if (x.channels() != options_.channels) {
    fail("transformer layer", "x [rows, " + std::to_string(options_.channels) + "]", x.rows.shape().str());
  }
  if (x.total() == 0) return;
  const Workspace::Side side = context.workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = context.workspace.mark();
  const auto normed = context.workspace.array<float>(side, to_size(x.total()) * to_size(options_.channels));
  const auto rows = context.workspace.array<const float*>(side, to_size(x.total()));
  attend(x, states, rotations, normed, rows, context);
  feed_forward(x, normed, rows, context);
  context.workspace.release(side, mark);
}

// Both halves leave what they add to x in `normed`, whose first content is no longer needed by then. (A
// product that started from x itself would round each of its terms to x's last place.)
void TransformerLayer::attend(const Sequences& x, States states, std::span<const float> rotations,
                              std::span<float> normed, std::span<const float*> rows,
                              StepContext& context) const {
  const Workspace::Side side = context.workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = context.workspace.mark();
  const AttentionOptions& heads = options_.attention;
  const std::size_t qkv_channels = to_size(heads.qkv_channels()), rotation_size = to_size(rope_.size());
  const auto qkv = context.workspace.array<float>(side, rows.size() * qkv_channels);
  const auto answers = context.workspace.array<float>(side, rows.size() * to_size(heads.out_channels()));

  normalize(weights_.norm1, x, normed.data(), context.pool);                  // [total, channels]
  apply_linear(weights_.qkv, normed.data(), rows, qkv.data(), context.pool);  // [total, qkv_channels]
  for_rows(context.pool, x.total(), [&](int first, int count) {
    for (std::size_t m = to_size(first); m < to_size(first + count); ++m) {
      rope_.rotate(&rotations[m * rotation_size], &qkv[m * qkv_channels], heads.heads + heads.kv_heads);
    }
  });
  attention(heads, qkv.data(), x.lengths, states, answers.data(), side,
            context);                                                             // [total, heads * head_dim]
  apply_linear(weights_.out, answers.data(), rows, normed.data(), context.pool);  // [total, channels]
  Tensor sum = x.rows;
  add(normed.data(), sum.f32(), normed.size());
  context.workspace.release(side, mark);
}

void TransformerLayer::feed_forward(const Sequences& x, std::span<float> normed, std::span<const float*> rows,
                                    StepContext& context) const {
  const Workspace::Side side = context.workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = context.workspace.mark();
  const std::size_t hidden_channels = to_size(options_.hidden);
  const auto hidden = context.workspace.array<float>(side, rows.size() * hidden_channels);

  normalize(weights_.norm2, x, normed.data(), context.pool);                    // [total, channels]
  apply_linear(weights_.up, normed.data(), rows, hidden.data(), context.pool);  // [total, hidden]
  for_rows(context.pool, x.total(), [&](int first, int count) {
    float* const part = &hidden[to_size(first) * hidden_channels];
    activate(options_.activation, part, part, to_size(count) * hidden_channels);
  });
  apply_linear(weights_.down, hidden.data(), rows, normed.data(), context.pool);  // [total, channels]
  Tensor sum = x.rows;
  add(normed.data(), sum.f32(), normed.size());
  context.workspace.release(side, mark);
}

void TransformerLayer::normalize(const NormWeights& norm, const Sequences& x, float* out,
                                 ThreadPool& pool) const {
  const std::size_t channels = to_size(options_.channels);
  for_rows(pool, x.total(), [&](int first, int count) {
    const float* const from = x.rows.f32() + to_size(first) * channels;
    float* const to = out + to_size(first) * channels;
    if (options_.norm == NormKind::layer_norm) {
      const float* const bias = norm.bias.empty() ? nullptr : norm.bias.data();
      layer_norm(from, norm.weight.data(), bias, options_.norm_eps, to, to_size(count), options_.channels);
    } else {
      rms_norm(from, norm.weight.data(), options_.norm_eps, to, to_size(count), options_.channels);
    }
  });
}

Transformer::Transformer(const TransformerOptions& options, std::vector<TransformerLayerWeights> layers) {
  if (layers.empty()) fail("transformer", "at least one layer", "none");
  layers_.reserve(layers.size());
  for (TransformerLayerWeights& weights : layers) layers_.emplace_back(options, std::move(weights));
}

void Transformer::init_state(std::byte* state) const {
  for (const TransformerLayer& layer : layers_) {
    layer.init_state(state);
    state += layer.state_bytes();
  }
}

std::size_t Transformer::workspace_bytes(int streams, int rows) const {
  return layers_.front().workspace_bytes(streams, rows);
}

Sequences Transformer::step(Sequences x, States states, StepContext& context) const {
  const Workspace::Side side = context.workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = context.workspace.mark();
  const std::span<const float> rotations = layers_.front().rotations(x, states, context);
  for (const TransformerLayer& layer : layers_) {
    layer.apply(x, states, rotations, context);
    states = states.at(layer.state_bytes());
  }
  context.workspace.release(side, mark);
  return x;
}

}  // namespace tessera
