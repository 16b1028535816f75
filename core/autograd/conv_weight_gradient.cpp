// The weight gradient of a convolution: one product of the transposed input with dy over all positions. Row
// (kh, kw, c) of dw meets dy along a run of channel c of the transposed input, so overlapping windows need no
// copy of their own. Small gradients are summed in several fixed lanes of positions, so that there is work
// for every thread; the lanes are added up in order.
#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "core/activation.h"
#include "core/autograd/conv_operands.h"
#include "core/autograd/conv_products.h"
#include "core/gemm_pack.h"

namespace tessera::ops {
namespace {

// The input transposed: [phases_h, phases_w, channels, batch, height, width], where element (h, w) of a phase
// is element (h * stride_h + phase_h, w * stride_w + phase_w) of the padded input: the taps of one phase are
// shifts of one another.
struct Transposed {
  explicit Transposed(const ConvShape& s)
      : phases_h(std::min(s.options.stride_h, s.kernel_h)),
        phases_w(std::min(s.options.stride_w, s.kernel_w)),
        height(s.out_height + shift(s.kernel_h - 1, s.options.stride_h, s.options.dilation_h)),
        width(s.out_width + shift(s.kernel_w - 1, s.options.stride_w, s.options.dilation_w)) {
    constexpr std::int64_t kLine = 16;  // an odd number of lines: rows do not fall together in the cache
    const std::int64_t lines = static_cast<std::int64_t>(s.batch) * height * width / kLine + 1;
    channel = (lines + (lines % 2 == 0)) * kLine;
    phase = channel * s.channels;
  }
  // By how many elements of its phase a tap lies after the first.
  static int shift(int tap, int stride, int dilation) { return stride > 1 ? tap / stride : tap * dilation; }

  // Where the run of output (0, 0) of the first item starts for a row of dw.
  std::int64_t offset(const ConvShape& s, int kh, int kw, int c) const {
    const Conv2dOptions& o = s.options;
    const std::int64_t p = kh % o.stride_h * phases_w + kw % o.stride_w;
    return p * phase + c * channel + static_cast<std::int64_t>(shift(kh, o.stride_h, o.dilation_h)) * width +
           shift(kw, o.stride_w, o.dilation_w);
  }

  int phases_h, phases_w, height, width;
  std::int64_t channel, phase;  // elements of one channel, of one phase
};

// Columns [begin, end) of one row of a phase, all channels, from row h of item b of x.
template <class Kind>
void transpose_stretch(const float* from, std::ptrdiff_t from_stride, int columns, int channels,
                       typename Kind::Element* to, std::ptrdiff_t to_stride) {
  if constexpr (std::is_same_v<typename Kind::Element, float>) {
    transpose(from, from_stride, columns, channels, to, to_stride);
  } else {
    constexpr int kColumns = 128, kChannels = 16;
    alignas(64) float tile[kChannels * kColumns];
    for (int c = 0; c < channels; c += kChannels) {
      const int some = std::min(kChannels, channels - c);
      for (int w = 0; w < columns; w += kColumns) {
        const int count = std::min(kColumns, columns - w);
        transpose(from + w * from_stride + c, from_stride, count, some, tile, kColumns);
        for (int i = 0; i < some; ++i) {
          Kind::convert(tile + i * kColumns, to_size(count), to + (c + i) * to_stride + w);
        }
      }
    }
  }
}

template <class Kind>
Scratch<typename Kind::Element> transposed(Tape& tape, const ConvShape& s, const Transposed& t,
                                           const float* x) {
  using Element = typename Kind::Element;
  const Conv2dOptions& o = s.options;
  Scratch<Element> result(tape, to_size(t.phase) * to_size(t.phases_h * t.phases_w));
  constexpr int kStretch = 512;  // columns
  const int stretches = divide_up(t.width, kStretch);
  const int phases = t.phases_h * t.phases_w;
  tape.pool().parallel_for(phases * s.batch * t.height * stretches, [&](int i) {
    // All phases of a stretch one after the other: they read the same lines of x.
    const int p = i % phases, ph = p / t.phases_w, pw = p % t.phases_w;
    const int begin = i / phases % stretches * kStretch, end = std::min(begin + kStretch, t.width);
    const int row = i / phases / stretches, h = row % t.height, b = row / t.height;
    Element* const to = result.data() + p * t.phase + (static_cast<std::int64_t>(b) * t.height + h) * t.width;
    const int from_h = h * o.stride_h + ph - o.pad_top;
    // Column w of the phase is column w * stride_w + pw - pad_left of x: there are such from `first` to
    // `last`.
    const bool inside = from_h >= 0 && from_h < s.height;
    const int skip = o.pad_left - pw;
    const int first = std::clamp(skip > 0 ? divide_up(skip, o.stride_w) : 0, begin, end);
    const int last = inside ? std::clamp(divide_up(s.width + skip, o.stride_w), first, end) : first;
    if (first > begin || last < end) {
      for (int c = 0; c < s.channels; ++c) {
        std::fill(to + c * t.channel + begin, to + c * t.channel + first, Element{});
        std::fill(to + c * t.channel + last, to + c * t.channel + end, Element{});
      }
    }
    if (last == first) return;
    const std::int64_t from_w = static_cast<std::int64_t>(first) * o.stride_w - skip;
    const std::int64_t x_row = static_cast<std::int64_t>(b) * s.height + from_h;
    transpose_stretch<Kind>(x + (x_row * s.width + from_w) * s.channels,
                            static_cast<std::ptrdiff_t>(o.stride_w) * s.channels, last - first, s.channels,
                            to + first, t.channel);
  });
  return result;
}

// Positions as runs: `groups` of `segments` runs of `length`. In dy all follow one another.
struct Positions {
  Positions(const ConvShape& s, const Transposed& t) : length(s.out_width) {
    const std::int64_t item = static_cast<std::int64_t>(t.height) * t.width;
    if (s.out_height == 1) {
      segments = s.batch;
      segment_stride = item;
    } else {
      groups = s.batch;
      segments = s.out_height;
      group_stride = item;
      segment_stride = t.width;
    }
    if (segment_stride == length) {
      length *= segments;
      segments = 1;
    }
  }
  int groups = 1, segments = 1, length = 1;
  std::int64_t group_stride = 0, segment_stride = 0;
};

// Some positions that are multiplied at a time.
struct Block {
  std::int64_t position = 0;  // the first in dy
  std::int64_t offset = 0;    // of its run in the transposed input
  int segments = 1, length = 1;
};

std::vector<Block> blocks_of(const Positions& p, int most) {
  std::vector<Block> blocks;
  std::int64_t position = 0;
  for (int g = 0; g < p.groups; ++g) {
    const int step = std::max(most / p.length, 1);
    for (int s = 0; s < p.segments; s += step) {
      const std::int64_t offset = g * p.group_stride + s * p.segment_stride;
      const int segments = std::min(step, p.segments - s);
      const int parts = segments == 1 ? divide_up(p.length, most) : 1;
      for (int i = 0, begin = 0; i < parts; ++i) {
        const int length = (p.length - begin + parts - i - 1) / (parts - i);
        blocks.push_back({position, offset + begin, segments, length});
        position += static_cast<std::int64_t>(segments) * length;
        begin += length;
      }
    }
  }
  return blocks;
}

template <class Kind>
class WeightGradient {
 public:
  using Element = typename Kind::Element;

  WeightGradient(Tape& tape, const ConvShape& s, const float* dy, const float* x)
      : tape_(tape),
        shape_(s),
        dy_(dy),
        rows_(s.kernel_h * s.kernel_w * s.channels),
        layout_(s),
        positions_(s, layout_),
        x_(transposed<Kind>(tape, s, layout_, x)) {}

  void run(float* dw) {
    const std::int64_t positions =
        static_cast<std::int64_t>(shape_.batch) * shape_.out_height * shape_.out_width;
    const std::int64_t outputs = static_cast<std::int64_t>(rows_) * shape_.outputs;
    // A small product has too few rows to share out.
    constexpr std::int64_t kSmall = 1 << 16, kLeastPositions = 1024, kMostLanes = 16;
    const std::int64_t lanes =
        outputs > kSmall ? 1 : std::clamp<std::int64_t>(positions / kLeastPositions, 1, kMostLanes);
    if (lanes == 1) {
      constexpr int kBlock = 4096;
      const std::vector<Block> blocks = blocks_of(positions_, kBlock);
      accumulate(blocks, memory_for(blocks), dw, tape_.pool());
      return;
    }
    constexpr int kBlock = 512;  // a packed block stays in the second-level cache
    const std::vector<Block> blocks = blocks_of(positions_, kBlock);
    const std::size_t count = blocks.size();
    std::vector<Memory> memory;
    for (std::int64_t i = 0; i < lanes; ++i) memory.push_back(memory_for(blocks));
    Scratch<float> sums(tape_, to_size((lanes - 1) * outputs));
    tape_.pool().parallel_for(static_cast<int>(lanes), [&](int i) {
      const std::size_t begin = count * to_size(i) / to_size(lanes);
      const std::size_t end = count * to_size(i + 1) / to_size(lanes);
      ThreadPool alone;
      accumulate(std::span(blocks).subspan(begin, end - begin), memory[to_size(i)],
                 i == 0 ? dw : sums.data() + (i - 1) * outputs, alone);
    });
    for_stretches(tape_.pool(), outputs, 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 1; i < lanes; ++i) {
        tessera::add(sums.data() + (i - 1) * outputs + begin, dw + begin, to_size(end - begin));
      }
    });
  }

 private:
  struct Memory {
    Scratch<const Element*> rows;
    Scratch<Element> packed;
  };

  Memory memory_for(std::span<const Block> blocks) {
    std::size_t most = 0;
    for (const Block& b : blocks) {
      most = std::max(most, Kind::packed_elements(b.segments * b.length, shape_.outputs, b.segments));
    }
    Memory memory;
    memory.rows = Scratch<const Element*>(tape_, to_size(rows_));
    memory.packed = Scratch<Element>(tape_, most);
    return memory;
  }

  // out = the sum over the blocks, one chain from the first to the last.
  void accumulate(std::span<const Block> blocks, Memory memory, float* out, ThreadPool& pool) const {
    GemmStart start = GemmStart::zero;
    for (const Block& block : blocks) {
      const Element** row = memory.rows.data();
      for (int kh = 0; kh < shape_.kernel_h; ++kh) {
        for (int kw = 0; kw < shape_.kernel_w; ++kw) {
          const Element* const from = x_.data() + layout_.offset(shape_, kh, kw, 0) + block.offset;
          for (int c = 0; c < shape_.channels; ++c) *row++ = from + c * layout_.channel;
        }
      }
      const int k = block.segments * block.length;
      const PackedMatrix::Source source{dy_ + block.position * shape_.outputs, k, 0, shape_.outputs, 1};
      const auto weights = Kind::pack(memory.packed.data(), source, k, shape_.outputs, block.segments, pool);
      typename Kind::Args args;
      args.rows = {memory.rows.data(), to_size(rows_)};
      args.segments = block.segments;
      args.segment_stride = positions_.segment_stride;
      args.weights = &weights;
      args.start = start;
      args.out = out;
      args.out_stride = shape_.outputs;
      Kind::multiply(args, pool);
      start = GemmStart::output;
    }
  }

  Tape& tape_;
  const ConvShape& shape_;
  const float* dy_;
  int rows_;
  Transposed layout_;
  Positions positions_;
  Scratch<Element> x_;
};

}  // namespace

void conv_weight_gradient(Tape& tape, const ConvShape& shape, const float* dy, const float* x, float* dw) {
  if (shape.bf16) return WeightGradient<Bf16Operands>(tape, shape, dy, x).run(dw);
  WeightGradient<F32Operands>(tape, shape, dy, x).run(dw);
}

}  // namespace tessera::ops
