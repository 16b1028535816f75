#include "quantizers/fsq.h"

#include <algorithm>
#include <string>

#include "core/activation.h"
#include "core/error.h"
#include "core/exact_math.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// Ties to even. Adding 1.5 * 2^23 leaves no bits for a fraction; |x| is far below that.
float round_to_even(float x) {
  volatile float shifted = x + 12582912.0f;
  return shifted - 12582912.0f;
}

}  // namespace

Fsq::Fsq(std::vector<int> levels) : levels_(std::move(levels)) {
  constexpr int kMaxSize = 1 << 24;
  if (levels_.empty()) fail("fsq", "at least one dimension", "none");
  for (const int level : levels_) {
    if (level < 2 || level > kMaxSize / size_)
      fail("fsq", "levels of at least 2 with a product of at most 2^24", std::to_string(level));
    size_ *= level;
    // The range is a little wider than the outermost levels, so that they can be reached.
    const double half = (level - 1) * (1 + 1e-3) / 2;
    const double offset = level % 2 ? 0.0 : 0.5;
    const double ratio = offset / half;
    half_.push_back(static_cast<float>(half));
    offset_.push_back(static_cast<float>(offset));
    shift_.push_back(static_cast<float>(0.5 * exact_log((1 + ratio) / (1 - ratio))));  // atanh
  }
}

std::size_t Fsq::workspace_bytes(int rows) const {
  return Workspace::padded(to_size(rows) * levels_.size() * sizeof(float));
}

void Fsq::encode(const float* latents, int rows, int count, std::int32_t* tokens,
                 StepContext& context) const {
  expect_codebooks(*this, count);
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const std::size_t dims = levels_.size(), size = to_size(rows) * dims;
  float* z = workspace.array<float>(Workspace::Side::low, size).data();
  for (std::size_t i = 0; i < size; ++i) z[i] = latents[i] + shift_[i % dims];
  activate(Activation::tanh, z, z, size);
  for (int row = 0; row < rows; ++row) {
    int basis = 1, token = 0;
    for (std::size_t i = 0; i < dims; ++i) {
      const float level = round_to_even(z[to_size(row) * dims + i] * half_[i] - offset_[i]);
      const float lowest = -static_cast<float>(levels_[i] / 2);
      const float bounded = level > lowest ? std::min(level, lowest + static_cast<float>(levels_[i] - 1))
                                           : lowest;  // NaN: lowest
      const int digit = static_cast<int>(bounded - lowest);
      token += digit * basis;
      basis *= levels_[i];
    }
    tokens[row] = token;
  }
  workspace.release(Workspace::Side::low, mark);
}

void Fsq::decode(const std::int32_t* tokens, int rows, int count, float* latents, StepContext&) const {
  expect_codebooks(*this, count);
  for (int row = 0; row < rows; ++row) {
    int rest = tokens[row];
    for (const int level : levels_) {
      const int half = level / 2;
      *latents++ = static_cast<float>(rest % level - half) / static_cast<float>(half);
      rest /= level;
    }
  }
}

}  // namespace tessera
