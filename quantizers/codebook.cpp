#include "quantizers/codebook.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/linear.h"
#include "core/norm.h"
#include "core/search.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// Rows searched at a time: their scores stay in the cache.
constexpr int kBlock = 32;

}  // namespace

Codebook::Codebook(std::span<const float> codewords, int size, int dimension, WeightType type,
                   bool searchable)
    : size_(size), dimension_(dimension), codewords_(codewords.begin(), codewords.end()) {
  if (codewords.size() != to_size(size) * to_size(dimension)) {
    fail("codebook", std::to_string(size) + " x " + std::to_string(dimension) + " values",
         std::to_string(codewords.size()));
  }
  if (!searchable) return;
  search_ = PackedMatrix::pack(codewords.data(), dimension, size, 1, dimension, type);
  half_norms_.resize(to_size(size));
  for (int i = 0; i < size; ++i) {
    const float* codeword = codewords_.data() + to_size(i) * to_size(dimension);
    half_norms_[to_size(i)] = -0.5f * fixed_dot(codeword, codeword, to_size(dimension));
  }
}

std::size_t Codebook::workspace_bytes(int rows) const {
  const std::size_t block = to_size(std::min(rows, kBlock));
  return Workspace::padded(block * to_size(size_) * sizeof(float)) +
         Workspace::padded(block * sizeof(std::int32_t)) + linear_workspace_bytes(std::min(rows, kBlock));
}

void Codebook::nearest(const float* rows, int count, std::int32_t* indices, std::ptrdiff_t index_stride,
                       StepContext& context) const {
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const int block = std::min(count, kBlock);
  const auto block_scores = workspace.array<float>(Workspace::Side::low, to_size(block) * to_size(size_));
  const auto found = workspace.array<std::int32_t>(Workspace::Side::low, to_size(block));
  for (int first = 0; first < count; first += block) {
    const int now = std::min(block, count - first);
    scores(rows + to_size(first) * to_size(dimension_), now, block_scores.data(), context);
    argmax_rows(block_scores.data(), to_size(now), size_, size_, found.data());
    for (int i = 0; i < now; ++i) indices[(first + i) * index_stride] = found[to_size(i)];
  }
  workspace.release(Workspace::Side::low, mark);
}

void Codebook::scores(const float* rows, int count, float* scores, StepContext& context) const {
  if (!search_.data()) fail("codebook", "a searchable codebook", "one for decoding only");
  linear({.x = rows,
          .rows = count,
          .weights = &search_,
          .start = GemmStart::bias,
          .bias = half_norms_.data(),
          .out = scores},
         Workspace::Side::low, context);
}

void Codebook::accumulate(std::int32_t index, float sign, float* row) const {
  const float* codeword = codewords_.data() + static_cast<std::size_t>(index) * to_size(dimension_);
  for (int i = 0; i < dimension_; ++i) row[i] += sign * codeword[i];
}

}  // namespace tessera
