#include "core/sequential.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

std::size_t elements(const Sequences& x) {
  return static_cast<std::size_t>(x.rows.size());
}

// Moves y to the side opposite to where it lies, which must be free above `mark`.
Sequences to_other_side(const Sequences& y, Workspace& workspace, const Workspace::Mark& mark) {
  const Workspace::Side side = workspace.side_of(y.rows.raw());
  Sequences moved = allocate_sequences(workspace, Workspace::other(side), y.lengths, y.ends, y.channels());
  std::memcpy(moved.rows.raw(), y.rows.raw(), y.rows.bytes());
  workspace.release(side, mark);
  return moved;
}

}  // namespace

Sequential& Sequential::add(std::unique_ptr<Layer> layer) {
  if (!layers_.empty() && out_channels() != layer->in_channels()) {
    fail("sequential", "a layer with " + std::to_string(out_channels()) + " input channels",
         std::to_string(layer->in_channels()));
  }
  const std::size_t bytes = layer->state_bytes();
  layers_.push_back({std::move(layer), state_bytes_});
  state_bytes_ += bytes;
  return *this;
}

int Sequential::in_channels() const {
  return layers_.empty() ? 0 : layers_.front().layer->in_channels();
}
int Sequential::out_channels() const {
  return layers_.empty() ? 0 : layers_.back().layer->out_channels();
}

void Sequential::init_state(std::byte* state) const {
  for (const Placed& placed : layers_) placed.layer->init_state(state + placed.offset);
}

int Sequential::max_rows(int rows) const {
  for (const Placed& placed : layers_) rows = placed.layer->max_rows(rows);
  return rows;
}

RowRatio Sequential::ratio() const {
  RowRatio ratio;
  for (const Placed& placed : layers_) {
    const RowRatio own = placed.layer->ratio();
    ratio = {ratio.up * own.up, ratio.down * own.down};
    const std::int64_t common = std::gcd(ratio.up, ratio.down);
    ratio = {ratio.up / common, ratio.down / common};
  }
  return ratio;
}

int Sequential::holdback() const {
  // A layer that holds back h rows gives nothing before its input has h + 1.
  std::int64_t needed = 1;
  RowRatio before;
  for (const Placed& placed : layers_) {
    const std::int64_t rows = placed.layer->holdback() + 1;
    if (rows > 1) needed = std::max(needed, (rows * before.down + before.up - 1) / before.up);
    const RowRatio own = placed.layer->ratio();
    before = {before.up * own.up, before.down * own.down};
  }
  return static_cast<int>(needed - 1);
}

std::size_t Sequential::workspace_bytes(int streams, int rows) const {
  // The sum, not the largest neighbours: an easy bound, and memory that is never touched costs nothing.
  std::size_t bytes = 0;
  for (const Placed& placed : layers_) {
    bytes += placed.layer->workspace_bytes(streams, rows);
    rows = placed.layer->max_rows(rows);
  }
  return bytes + sequences_bytes(streams, rows, out_channels());  // for a move at the end
}

Sequences Sequential::step(Sequences x, States states, StepContext& context) const {
  Workspace& workspace = context.workspace;
  const Workspace::Mark start = workspace.mark();
  const Workspace::Side x_side = workspace.side_of(x.rows.raw());
  Sequences current = x;
  for (const Placed& placed : layers_) {
    const Workspace::Side side = workspace.side_of(current.rows.raw());
    Sequences next = placed.layer->step(current, states.at(placed.offset), context);
    const bool in_place = next.rows.raw() == current.rows.raw();
    if (!in_place && current.rows.raw() != x.rows.raw()) workspace.release(side, start);
    current = next;
  }
  const bool moved = current.rows.raw() != x.rows.raw();
  if (moved && workspace.side_of(current.rows.raw()) == x_side)
    return to_other_side(current, workspace, start);
  return current;
}

Residual::Residual(std::unique_ptr<Layer> inner, std::unique_ptr<Layer> skip)
    : inner_(std::move(inner)), skip_(std::move(skip)) {
  const int skip_out = skip_ ? skip_->out_channels() : inner_->in_channels();
  if (skip_out != inner_->out_channels()) {
    fail("residual", std::to_string(inner_->out_channels()) + " channels on the skip side",
         std::to_string(skip_out));
  }
  skip_offset_ = inner_->state_bytes();
  queue_offset_ = skip_offset_ + (skip_ ? skip_->state_bytes() : 0);
}

// The queue of waiting skip rows: their number, then holdback() rows.
std::size_t Residual::state_bytes() const {
  const std::size_t rows = to_size(inner_->holdback());
  if (rows == 0) return queue_offset_;
  return queue_offset_ +
         Workspace::padded(sizeof(std::int64_t) + rows * to_size(out_channels()) * sizeof(float));
}

void Residual::init_state(std::byte* state) const {
  inner_->init_state(state);
  if (skip_) skip_->init_state(state + skip_offset_);
  std::memset(state + queue_offset_, 0, state_bytes() - queue_offset_);
}

std::size_t Residual::workspace_bytes(int streams, int rows) const {
  return inner_->workspace_bytes(streams, rows) + (skip_ ? skip_->workspace_bytes(streams, rows) : 0);
}

Sequences Residual::step(Sequences x, States states, StepContext& context) const {
  Workspace& workspace = context.workspace;
  Sequences y = inner_->step(x, states, context);
  if (y.rows.raw() == x.rows.raw())
    fail("residual", "an inner layer that does not work in place", "one that does");
  const Workspace::Side side = workspace.side_of(y.rows.raw());
  const Workspace::Mark mark = workspace.mark();
  const Sequences skipped = skip_ ? skip_->step(x, states.at(skip_offset_), context) : x;
  if (inner_->holdback() > 0) {
    add_waiting(skipped, y, states.at(queue_offset_));
  } else {
    add(skipped.rows.f32(), y.rows.f32(), elements(y));
  }
  workspace.release(side, mark);
  return y;
}

// Adds the oldest rows of [waiting; skipped] to each stream's rows of y and keeps the rest waiting.
void Residual::add_waiting(const Sequences& skipped, Sequences& y, States states) const {
  const int channels = y.channels(), capacity = inner_->holdback();
  const float* from = skipped.rows.f32();
  float* to = y.rows.f32();
  for (int i = 0; i < y.streams(); ++i) {
    std::int64_t& waiting = *states.of<std::int64_t>(i);
    float* queue = reinterpret_cast<float*>(states.of(i) + sizeof(std::int64_t));
    const int held = static_cast<int>(waiting), length = skipped.lengths[to_size(i)];
    const int outputs = y.lengths[to_size(i)];
    const int from_queue = std::min(held, outputs), from_new = outputs - from_queue;
    add(queue, to, to_size(from_queue * channels));
    add(from, to + from_queue * channels, to_size(from_new * channels));
    const int kept = held - from_queue;
    std::memmove(queue, queue + from_queue * channels, to_size(kept * channels) * sizeof(float));
    std::memcpy(queue + kept * channels, from + from_new * channels,
                to_size((length - from_new) * channels) * sizeof(float));
    waiting = kept + length - from_new;
    std::fill(queue + waiting * channels, queue + capacity * channels, 0.0f);
    from += length * channels;
    to += outputs * channels;
  }
}

int Blocked::max_rows(int rows) const {
  return inner_->max_rows(rows) + (rows / rows_ + 1) * inner_->max_rows(0);
}

std::size_t Blocked::workspace_bytes(int streams, int rows) const {
  return sequences_bytes(streams, max_rows(rows), out_channels()) +
         inner_->workspace_bytes(1, std::min(rows, rows_));
}

Sequences Blocked::step(Sequences x, States states, StepContext& context) const {
  Workspace& workspace = context.workspace;
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const Workspace::Side out_side = Workspace::other(side);
  int bound = 0;
  for (const int length : x.lengths) bound += max_rows(length);
  const std::span<int> lengths = workspace.array<int>(out_side, x.lengths.size());
  float* const out = workspace.tensor(out_side, {bound, out_channels()}).f32();
  const Workspace::Mark mark = workspace.mark();

  const float* from = x.rows.f32();
  float* to = out;
  for (int i = 0; i < x.streams(); ++i) {
    int left = x.lengths[to_size(i)];
    lengths[to_size(i)] = 0;
    std::byte* const block = states.of(i);
    do {  // once for an empty piece, too: it may end the stream
      const int length = std::min(left, rows_);
      left -= length;
      const bool end = x.ends[to_size(i)] && left == 0;
      const Tensor rows = Tensor::view(const_cast<float*>(from), {length, in_channels()});
      const Sequences part = inner_->step({rows, {&length, 1}, {&end, 1}}, States({&block, 1}), context);
      std::memcpy(to, part.rows.raw(), part.rows.bytes());
      to += part.rows.size();
      from += length * in_channels();
      lengths[to_size(i)] += part.total();
      workspace.release(Workspace::Side::low, mark);
      workspace.release(Workspace::Side::high, mark);
    } while (left > 0);
  }
  return {Tensor::view(out, {(to - out) / out_channels(), out_channels()}), lengths, x.ends};
}

Sequences ActivationLayer::step(Sequences x, States, StepContext&) const {
  activate(f_, x.rows.f32(), x.rows.f32(), elements(x));
  return x;
}

Sequences ScaleChannels::step(Sequences x, States, StepContext&) const {
  scale_channels(scale_.data(), x.rows.f32(), to_size(x.total()), x.channels());
  return x;
}

}  // namespace tessera
