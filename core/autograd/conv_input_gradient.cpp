// The input gradient of a convolution: windows of dy times the kernel with its taps reversed and its channels
// exchanged. With a stride it is folded: `stride` neighbouring columns of dx are one row of the product over
// the few columns of dy that reach them, so nothing is scattered or added up.
#include <algorithm>

#include "core/autograd/conv_products.h"
#include "core/autograd/conv_windows.h"

namespace tessera::ops {
namespace {

// One axis of the folded input gradient. Elements q * stride .. q * stride + stride - 1 of dx see dy at
// first + q, first + q + dilation, ...: `taps` elements, the last tap of the kernel first. The kernel gets
// `front` zero taps, which brings the fold to the start of dx, and more at its end to fill the last group.
// Where a group is narrower than a panel, `join` of them are one row of the product, over a wider window of
// dy.
struct Fold {
  Fold(int extent, int kernel, int stride, int dilation, int pad, int joined = 1)
      : front((stride - pad % stride) % stride),
        taps(divide_up(kernel + front, stride)),
        join(joined),
        groups(divide_up(extent, stride * join) * join),
        first((pad + front) / stride - (taps - 1) * dilation),
        last((pad + front) / stride + groups) {}
  int front, taps, join, groups;
  int first, last;  // the elements of dy that are seen, `last` excluded
};

// Taps jh, jh + stride_h, ... of the kernel with its zero taps: [taps_h, taps_w * stride_w, channels,
// outputs].
Scratch<float> folded_weights(Tape& tape, const ConvShape& s, const Fold& h, const Fold& w, int jh,
                              const float* weights) {
  const std::size_t tap = to_size(s.channels) * to_size(s.outputs);
  const int columns = w.taps * s.options.stride_w;
  Scratch<float> result(tape, to_size(h.taps) * to_size(columns) * tap);
  tape.pool().parallel_for(h.taps * columns, [&](int i) {
    const int kh = i / columns * s.options.stride_h + jh - h.front, kw = i % columns - w.front;
    float* const to = result.data() + to_size(i) * tap;
    if (kh < 0 || kh >= s.kernel_h || kw < 0 || kw >= s.kernel_w) {
      std::fill_n(to, tap, 0.0f);
    } else {
      std::copy_n(weights + (to_size(kh) * to_size(s.kernel_w) + to_size(kw)) * tap, tap, to);
    }
  });
  return result;
}

// [batch, groups_h, groups_w, stride_w, channels] to every stride_h-th row of dx from row jh on.
void unfold(Tape& tape, const ConvShape& s, const Fold& h, const Fold& w, int jh, const float* folded,
            float* dx) {
  const std::size_t row = to_size(s.width) * to_size(s.channels);
  const std::size_t folded_row = to_size(w.groups) * to_size(s.options.stride_w) * to_size(s.channels);
  tape.pool().parallel_for(s.batch * h.groups, [&](int i) {
    const int y = i % h.groups * s.options.stride_h + jh;
    if (y >= s.height) return;
    std::copy_n(folded + to_size(i) * folded_row, row,
                dx + (to_size(i / h.groups) * to_size(s.height) + to_size(y)) * row);
  });
}

// The right operand where groups are joined, [taps_h, taps_w + join - 1, outputs, join * stride_w *
// channels]: a group sees the taps_w columns of dy from its own on, the others meet zeros.
Scratch<float> joined_weights(Tape& tape, const ConvShape& s, const Fold& h, const Fold& w, int jh,
                              const float* weights) {
  const int taps_w = w.taps + w.join - 1, stride = s.options.stride_w;
  const std::size_t columns = to_size(w.join) * to_size(stride) * to_size(s.channels);
  const std::size_t tap = to_size(s.channels) * to_size(s.outputs);
  Scratch<float> result(tape, to_size(h.taps) * to_size(taps_w) * to_size(s.outputs) * columns);
  tape.pool().parallel_for(h.taps * taps_w, [&](int index) {
    float* const to = result.data() + to_size(index) * to_size(s.outputs) * columns;
    std::fill_n(to, to_size(s.outputs) * columns, 0.0f);
    const int kh = (h.taps - 1 - index / taps_w) * s.options.stride_h + jh - h.front;
    if (kh < 0 || kh >= s.kernel_h) return;
    for (int i = 0; i < w.join * stride; ++i) {  // the element of dx within the joined groups
      const int m = index % taps_w - i / stride;
      const int kw = (w.taps - 1 - m) * stride + i % stride - w.front;
      if (m < 0 || m >= w.taps || kw < 0 || kw >= s.kernel_w) continue;
      const float* const from = weights + (to_size(kh) * to_size(s.kernel_w) + to_size(kw)) * tap;
      for (int c = 0; c < s.channels; ++c) {
        for (int o = 0; o < s.outputs; ++o) {
          to[to_size(o) * columns + to_size(i * s.channels + c)] = from[c * s.outputs + o];
        }
      }
    }
  });
  return result;
}

// How many groups of `columns` columns fill a panel.
int groups_joined(const ConvShape& s) {
  const std::int64_t columns = std::int64_t{s.options.stride_w} * s.channels;
  const int groups = divide_up(s.width, s.options.stride_w);
  if (s.options.dilation_w > 1 || columns >= PackedMatrix::kPanel) return 1;
  return std::min(static_cast<int>(PackedMatrix::kPanel / columns), groups);
}

template <class Kind>
void input_gradient(Tape& tape, const ConvShape& s, const float* dy, const float* w, float* dx) {
  const Conv2dOptions& o = s.options;
  const Fold fold_h(s.height, s.kernel_h, o.stride_h, o.dilation_h, o.pad_top);
  const Fold fold_w(s.width, s.kernel_w, o.stride_w, o.dilation_w, o.pad_left, groups_joined(s));
  const Window window{.batch = s.batch,
                      .height = s.out_height,
                      .width = s.out_width,
                      .channels = s.outputs,
                      .top = fold_h.first,
                      .bottom = fold_h.last,
                      .left = fold_w.first,
                      .right = fold_w.last};
  WindowProduct product{.window = window,
                        .kernel_h = fold_h.taps,
                        .kernel_w = fold_w.taps + fold_w.join - 1,
                        .dilation_h = o.dilation_h,
                        .dilation_w = o.dilation_w,
                        .stride_w = fold_w.join,
                        .out_height = fold_h.groups,
                        .out_width = fold_w.groups / fold_w.join,
                        .outputs = fold_w.join * o.stride_w * s.channels};
  const bool direct = o.stride_h == 1 && fold_w.groups * o.stride_w == s.width;
  const bool as_it_is = o.stride_h == 1 && fold_w.front == 0 && s.kernel_w % o.stride_w == 0;
  Scratch<float> folded;
  if (!direct) {
    folded = Scratch<float>(tape, to_size(s.batch) * to_size(fold_h.groups) * to_size(product.out_width) *
                                      to_size(product.outputs));
  }
  for (int jh = 0; jh < o.stride_h; ++jh) {
    Scratch<float> copy;
    if (fold_w.join > 1) {
      copy = joined_weights(tape, s, fold_h, fold_w, jh, w);
      product.weights = {copy.data(), product.kernel_h * product.kernel_w * s.outputs, 0, product.outputs, 1};
    } else {
      if (!as_it_is) copy = folded_weights(tape, s, fold_h, fold_w, jh, w);
      const float* const first = as_it_is ? w : copy.data();
      const std::ptrdiff_t group = static_cast<std::ptrdiff_t>(product.outputs) * s.outputs;
      product.weights = {first + (fold_h.taps * fold_w.taps - 1) * group, s.outputs, -group, 1, s.outputs};
    }
    multiply_windows<Kind>(tape, product, dy, direct ? dx : folded.data());
    if (!direct) unfold(tape, s, fold_h, fold_w, jh, folded.data(), dx);
  }
}

}  // namespace

void conv_input_gradient(Tape& tape, const ConvShape& shape, const float* dy, const float* w, float* dx) {
  if (shape.bf16) return input_gradient<Bf16Operands>(tape, shape, dy, w, dx);
  input_gradient<F32Operands>(tape, shape, dy, w, dx);
}

}  // namespace tessera::ops
