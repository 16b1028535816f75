// Products of windows of an array with packed weights: the output of a convolution and its input gradient. A
// window is a few contiguous runs of the array or of a zero-padded copy, given to the product by pointer.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/autograd/conv_operands.h"

namespace tessera::ops {

/// Rows [top, bottom) and columns [left, right) of every item of x [batch, height, width, channels]; what
/// lies outside of x is zero.
struct Window {
  int batch = 1, height = 1, width = 1, channels = 1;
  int top = 0, bottom = 1, left = 0, right = 1;

  bool whole_rows() const { return top == 0 && bottom == height; }
  bool whole() const { return whole_rows() && left == 0 && right == width; }
  int rows() const { return bottom - top; }
  int columns() const { return right - left; }
  std::ptrdiff_t row() const { return static_cast<std::ptrdiff_t>(columns()) * channels; }
};

/// The same as a copy [batch, rows, columns, channels].
template <class Kind>
Scratch<typename Kind::Element> padded_copy(Tape& tape, const Window& window, const float* x) {
  using Element = typename Kind::Element;
  const std::int64_t row = window.row();
  const std::int64_t count = row * window.rows() * window.batch;
  Scratch<Element> result(tape, to_size(count));
  Element* const to = result.data();
  // Of a row of the result, elements [from, until) are those of x from `skip` on.
  const std::int64_t from =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(-window.left) * window.channels, 0, row);
  const std::int64_t until = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(window.width - window.left) * window.channels, from, row);
  const std::int64_t skip = static_cast<std::int64_t>(std::max(window.left, 0)) * window.channels;
  constexpr std::int64_t kStretch = 1 << 14;
  for_stretches(tape.pool(), count, kStretch, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t index = begin / row, first = begin % row;
      const std::int64_t last = std::min(row, first + end - begin);
      const std::int64_t h = window.top + index % window.rows();
      const bool inside = h >= 0 && h < window.height;
      const std::int64_t a = inside ? std::clamp(from, first, last) : last;
      const std::int64_t b = inside ? std::clamp(until, a, last) : last;
      Element* const out = to + index * row;
      std::fill(out + first, out + a, Element{});
      if (b > a) {
        const std::int64_t item = index / window.rows();
        const float* const in =
            x + (item * window.height + h) * window.width * static_cast<std::int64_t>(window.channels);
        Kind::convert(in + skip + a - from, to_size(b - a), out + a);
      }
      std::fill(out + b, out + last, Element{});
      begin += last - first;
    }
  });
  return result;
}

/// y[b, i, j, :] = bias + sum over kh, kw, c of x[b, i stride_h + kh dilation_h, j stride_w + kw dilation_w,
/// c] times weights[(kh, kw, c), :], where x is what the window shows.
struct WindowProduct {
  Window window = {};
  int kernel_h = 1, kernel_w = 1;
  int dilation_h = 1, dilation_w = 1, stride_h = 1, stride_w = 1;
  int out_height = 1, out_width = 1, outputs = 1;
  PackedMatrix::Source weights = {};  // inner: the channels
  const float* bias = nullptr;

  int extent_w() const { return (kernel_w - 1) * dilation_w + 1; }
};

/// Where the window of each output starts: in x itself, or in a copy. In f32 only the first and the last
/// windows of a padded sequence see zeros: they alone get a copy.
template <class Kind>
class WindowRows {
 public:
  using Element = typename Kind::Element;

  WindowRows(Tape& tape, const WindowProduct& p, const float* x)
      : p_(p), first_(0), last_(p.out_width), all_{nullptr, 0, p.window.row(), 0} {
    const Window& w = p.window;
    if constexpr (std::is_same_v<Element, float>) {
      first_ = std::min(divide_up(std::max(-w.left, 0), p.stride_w), p.out_width);
      const int room = w.width - w.left - p.extent_w();  // before a window at the end of x
      last_ = std::clamp(room < 0 ? 0 : room / p.stride_w + 1, 0, p.out_width);
      const std::int64_t edges = std::int64_t{p.stride_w} * (first_ + p.out_width - last_) + 2 * p.extent_w();
      if (w.whole() || (w.height == 1 && w.whole_rows() && first_ <= last_ && edges < w.width / 2)) {
        all_.data = x;
        all_.offset = static_cast<std::ptrdiff_t>(w.left) * w.channels;
        all_.row = static_cast<std::ptrdiff_t>(w.width) * w.channels;
        before_ = edge(tape, x, 0, first_);
        after_ = edge(tape, x, last_, p.out_width);
        return;
      }
      first_ = 0;
      last_ = p.out_width;
    }
    copies_[0] = padded_copy<Kind>(tape, w, x);
    all_.data = copies_[0].data();
  }

  /// The windows of row i of item b, from row kh of the kernel on.
  void fill(int b, int i, int kh, const Element** to) const {
    const std::ptrdiff_t h = static_cast<std::ptrdiff_t>(b) * p_.window.rows() + i * p_.stride_h +
                             static_cast<std::ptrdiff_t>(kh) * p_.dilation_h;
    const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(p_.stride_w) * p_.window.channels;
    const auto some = [&](const Part& part, int begin, int end) {
      for (int j = begin; j < end; ++j)
        to[j] = part.data + (part.offset + h * part.row + (j - part.first) * step);
    };
    some(before_, 0, first_);
    some(all_, first_, last_);
    some(after_, last_, p_.out_width);
  }

 private:
  // Rows of an array; the window of output column `first` starts at `offset` of each, which may lie before
  // it.
  struct Part {
    const Element* data = nullptr;
    std::ptrdiff_t offset = 0, row = 0;
    int first = 0;
  };

  // What output columns [begin, end) see, as a copy.
  Part edge(Tape& tape, const float* x, int begin, int end) {
    if (begin == end) return {};
    Window w = p_.window;
    w.left += begin * p_.stride_w;
    w.right = w.left + (end - 1 - begin) * p_.stride_w + p_.extent_w();
    Scratch<Element>& copy = copies_[begin == 0 ? 0 : 1];
    copy = padded_copy<Kind>(tape, w, x);
    return {copy.data(), 0, w.row(), begin};
  }

  const WindowProduct& p_;
  int first_, last_;  // output columns whose windows lie in all_
  Part all_, before_ = {}, after_ = {};
  Scratch<Element> copies_[2] = {};
};

/// How the k values of one product lie in memory.
struct Runs {
  int segments = 1;
  std::ptrdiff_t stride = 0;
};

inline Runs runs_of(const WindowProduct& p, int kernel_h) {
  const std::ptrdiff_t row = p.window.row();
  const bool by_taps = p.dilation_w > 1 && p.kernel_w > 1;  // then kernel_h is 1
  Runs runs;
  runs.segments = by_taps ? p.kernel_w : kernel_h;
  runs.stride = by_taps ? static_cast<std::ptrdiff_t>(p.dilation_w) * p.window.channels : p.dilation_h * row;
  const std::ptrdiff_t length =
      static_cast<std::ptrdiff_t>(kernel_h) * p.kernel_w * p.window.channels / runs.segments;
  if (runs.stride == length) runs.segments = 1;  // they join
  return runs;
}

template <class Kind>
void multiply_windows(Tape& tape, const WindowProduct& p, const float* x, float* out) {
  using Element = typename Kind::Element;
  // Runs with gaps along both axes are one product for each kh; the sums go on from one to the next.
  const int products = p.kernel_h > 1 && p.kernel_w > 1 && p.dilation_w > 1 ? p.kernel_h : 1;
  const int kernel_h = p.kernel_h / products;
  const int taps = kernel_h * p.kernel_w, k = taps * p.window.channels;
  const Runs runs = runs_of(p, kernel_h);
  const WindowRows<Kind> windows(tape, p, x);
  const int lines = p.window.batch * p.out_height;
  Scratch<const Element*> rows(tape, to_size(lines) * to_size(p.out_width));
  Scratch<Element> memory(tape, Kind::packed_elements(k, p.outputs, runs.segments));
  for (int kh = 0; kh < products; ++kh) {
    constexpr int kLines = 64;
    for_stretches(tape.pool(), lines, kLines, [&](std::int64_t begin, std::int64_t end) {
      for (int i = static_cast<int>(begin); i < static_cast<int>(end); ++i) {
        windows.fill(i / p.out_height, i % p.out_height, kh, rows.data() + to_size(i) * to_size(p.out_width));
      }
    });
    PackedMatrix::Source source = p.weights;
    source.weights += kh * taps * source.outer_stride;
    const auto weights = Kind::pack(memory.data(), source, k, p.outputs, runs.segments, tape.pool());
    typename Kind::Args args;
    args.rows = {rows.data(), to_size(lines) * to_size(p.out_width)};
    args.segments = runs.segments;
    args.segment_stride = runs.stride;
    args.weights = &weights;
    args.start = kh > 0 ? GemmStart::output : p.bias != nullptr ? GemmStart::bias : GemmStart::zero;
    args.bias = p.bias;
    args.out = out;
    args.out_stride = p.outputs;
    Kind::multiply(args, tape.pool());
  }
}

}  // namespace tessera::ops
