// Every sum is a list of blocks whose places depend on sizes alone; the sums of the blocks are summed in turn
// until one is left. A block is one element of a parallel loop.
#include "core/autograd/sums.h"

#include <algorithm>

#include "core/autograd/op.h"
#include "core/norm.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kSumBlock = 4096, kRowBlock = 256, kColumnBlock = 1024;

}  // namespace

Tensor row_sums(Tape& tape, const Tensor& x, const Tensor& y, std::int64_t rows) {
  const std::int64_t width = rows > 0 ? x.size() / rows : 0;
  const std::int64_t blocks = std::max<std::int64_t>((width + kSumBlock - 1) / kSumBlock, 1);
  Tensor sums = tape.make(blocks > 1 ? Shape{rows, blocks} : Shape{rows});
  float* out = sums.f32();
  const float* times = y.defined() ? y.f32() : nullptr;
  for_rows(tape.pool(), rows * blocks, std::min(width, kSumBlock), [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t i = first; i < first + n; ++i) {
      const std::int64_t begin = i % blocks * kSumBlock, at = i / blocks * width + begin;
      const auto count = static_cast<std::size_t>(std::min(kSumBlock, width - begin));
      out[i] = times ? fixed_dot(x.f32() + at, times + at, count) : fixed_sum(x.f32() + at, count);
    }
  });
  return blocks > 1 ? row_sums(tape, sums, Tensor(), rows) : sums;
}

Tensor column_sums(Tape& tape, const Tensor& x, const Tensor& y, std::int64_t channels) {
  const std::int64_t rows = rows_of(x, channels);
  if (channels == 1) return row_sums(tape, x, y, 1);  // lanes run over columns: one would leave them idle
  if (rows == 0) return tape.zeros({channels});
  const std::int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  const std::int64_t pieces = (channels + kColumnBlock - 1) / kColumnBlock;
  Tensor sums = tape.make(blocks > 1 ? Shape{blocks, channels} : Shape{channels});
  float* out = sums.f32();
  const float* times = y.defined() ? y.f32() : nullptr;
  const std::int64_t work = std::min(rows, kRowBlock) * std::min(channels, kColumnBlock);
  for_rows(tape.pool(), blocks * pieces, work, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t i = first; i < first + n; ++i) {
      const std::int64_t row = i / pieces * kRowBlock, column = i % pieces * kColumnBlock;
      const std::int64_t at = row * channels + column;
      column_sums_block(x.f32() + at, times ? times + at : nullptr,
                        static_cast<std::size_t>(std::min(kRowBlock, rows - row)),
                        static_cast<std::size_t>(channels),
                        static_cast<std::size_t>(std::min(kColumnBlock, channels - column)),
                        out + i / pieces * channels + column);
    }
  });
  return blocks > 1 ? column_sums(tape, sums, Tensor(), channels) : sums;
}

}  // namespace tessera::ops
