#include "core/causal_window.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/workspace.h"

namespace tessera {

// In front of the kept rows in a stream's state.
struct CausalWindow::Header {
  std::int64_t total;    // rows taken so far
  std::int32_t held;     // rows kept
  std::int32_t started;  // the left pad is laid out
};

CausalWindow::CausalWindow(const Options& options)
    : options_(options),
      left_(options.extent - options.stride),
      extent_one_(options.extent == 1 && options.stride == 1) {
  if (options.stride < 1 || options.stride > options.extent) {
    fail("convolution", "1 <= stride <= extent " + std::to_string(options.extent),
         std::to_string(options.stride));
  }
  if (options.pad == PadMode::reflect && left_ < options.stride - 1) {
    fail("convolution", "a left pad of at least stride - 1 for reflect padding", std::to_string(left_));
  }
}

std::size_t CausalWindow::state_bytes() const {
  if (extent_one_) return 0;
  const int kept = options_.extent - 1;
  return Workspace::padded(sizeof(Header) +
                           static_cast<std::size_t>(kept * options_.channels) * sizeof(float));
}

void CausalWindow::init_state(std::byte* state) const {
  if (extent_one_) return;
  std::memset(state, 0, state_bytes());
  // Zeros before the start are rows like any other; the other pads need to see the first rows.
  if (options_.pad == PadMode::zero || left_ == 0) {
    Header* header = reinterpret_cast<Header*>(state);
    header->held = left_;
    header->started = 1;
  }
}

int CausalWindow::max_outputs(int rows) const {
  if (extent_one_) return rows;
  const int waiting = holdback() + options_.stride - 1;  // rows that may be there already, or come as padding
  return (rows + waiting) / options_.stride + (options_.stride > 1 ? 1 : 0);
}

void CausalWindow::enter(const float* rows, int length, float* memory) const {
  if (options_.snake) {
    snake(rows, options_.snake, memory, static_cast<std::size_t>(length), options_.channels);
  } else {
    activate(options_.pre, rows, memory,
             static_cast<std::size_t>(length) * static_cast<std::size_t>(options_.channels));
  }
}

// Lays the left pad before the first `available` rows, which stand at row left_ of memory. Returns the rows
// from memory on, or 0 when more rows are needed first.
int CausalWindow::pad_start(float* memory, int available, bool end) const {
  const std::size_t row = static_cast<std::size_t>(options_.channels);
  const std::size_t row_bytes = row * sizeof(float);
  float* first = memory + static_cast<std::size_t>(left_) * row;
  const int needed = options_.pad == PadMode::reflect ? left_ + 1 : 1;
  if (available < needed && !end) return 0;
  for (int j = 1; j <= left_; ++j) {
    float* to = first - static_cast<std::size_t>(j) * row;
    const int from = options_.pad == PadMode::reflect ? j : 0;
    if (from < available) {
      std::memcpy(to, first + static_cast<std::size_t>(from) * row, row_bytes);
    } else {  // a stream shorter than its pad is reflected as if zeros followed it
      std::memset(to, 0, row_bytes);
    }
  }
  return left_ + available;
}

// Completes the last window of a stream of `total` rows whose last `count` rows (pad included) are in memory.
int CausalWindow::pad_end(float* memory, int count, std::int64_t total) const {
  const std::ptrdiff_t row = options_.channels;
  const int missing = static_cast<int>((options_.stride - total % options_.stride) % options_.stride);
  for (int j = 1; j <= missing; ++j) {
    const int at = count - 1 + j;
    int from = -1;  // a row of zeros
    if (options_.pad == PadMode::replicate) {
      from = count - 1;
    } else if (options_.pad == PadMode::reflect && total > left_) {
      from = count - 1 - j;
    } else if (options_.pad == PadMode::reflect) {
      // A stream no longer than its pad counts as followed by zeros up to left + 1 rows, mirrored at the last
      // of them.
      const std::int64_t zeros = left_ + 1 - total;
      const std::int64_t mirrored = left_ - (j - zeros);
      if (j > zeros && mirrored < total) from = left_ + static_cast<int>(mirrored);
    }
    float* to = memory + at * row;
    if (from < 0) {
      std::fill_n(to, row, 0.0f);
    } else {
      std::copy_n(memory + from * row, row, to);
    }
  }
  return count + missing;
}

CausalWindow::Run CausalWindow::advance(const float* rows, int length, bool end, std::byte* state,
                                        float* memory) const {
  if (extent_one_) {
    if (transparent()) return {rows, length};
    enter(rows, length, memory);
    return {memory, length};
  }
  Header& header = *reinterpret_cast<Header*>(state);
  float* kept = reinterpret_cast<float*>(state + sizeof(Header));
  const std::size_t row = static_cast<std::size_t>(options_.channels);
  const auto floats = [&](int count) { return static_cast<std::size_t>(count) * row; };

  const int offset = header.started ? 0 : left_;  // leave room for a pad that is not there yet
  float* begin = memory + floats(offset);
  std::memcpy(begin, kept, floats(header.held) * sizeof(float));
  enter(rows, length, begin + floats(header.held));
  int count = header.held + length;
  header.total += length;

  if (!header.started) {
    const int padded = header.total > 0 ? pad_start(memory, count, end) : 0;
    if (padded == 0) {  // still waiting: keep everything
      std::memcpy(kept, begin, floats(count) * sizeof(float));
      header.held = count;
      return {memory, 0};
    }
    header.started = 1;
    count = padded;
  }
  if (end && header.total > 0) count = pad_end(memory, count, header.total);

  const int outputs = count >= options_.extent ? (count - options_.extent) / options_.stride + 1 : 0;
  const int consumed = outputs * options_.stride;
  header.held = count - consumed;
  std::memcpy(kept, memory + floats(consumed), floats(header.held) * sizeof(float));
  // Rows no longer kept are cleared: equal histories give equal states, however they were split.
  std::memset(kept + floats(header.held), 0, floats(options_.extent - 1 - header.held) * sizeof(float));
  return {memory, outputs};
}

}  // namespace tessera
