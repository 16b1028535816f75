#include "quantizers/factorized_vq.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/linear.h"
#include "core/norm.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// row / max(|row|, 1e-12)
void normalize(float* row, int count) {
  const float norm = std::max(std::sqrt(fixed_dot(row, row, to_size(count))), 1e-12f);
  for (int i = 0; i < count; ++i) row[i] /= norm;
}

std::vector<float> normalized(std::vector<float> rows, int count) {
  for (std::size_t at = 0; at < rows.size(); at += to_size(count)) normalize(rows.data() + at, count);
  return rows;
}

void project(const float* x, int rows, const PackedMatrix& weights, const std::vector<float>& bias,
             float* out, StepContext& context) {
  linear(
      {.x = x, .rows = rows, .weights = &weights, .start = GemmStart::bias, .bias = bias.data(), .out = out},
      Workspace::Side::low, context);
}

}  // namespace

FactorizedVq::FactorizedVq(std::vector<Level> levels) : levels_(std::move(levels)) {
  if (levels_.empty()) fail("factorized_vq", "at least one codebook", "none");
  for (const Level& level : levels_) {
    const int inside = level.input.n();
    const bool fits = level.input.k() == dimension() && level.output.n() == dimension() &&
                      level.output.k() == inside && level.input_bias.size() == to_size(inside) &&
                      level.output_bias.size() == to_size(dimension()) && !level.codewords.empty() &&
                      level.codewords.size() % to_size(inside) == 0;
    if (!fits) {
      fail("factorized_vq",
           "projections " + std::to_string(dimension()) + " -> " + std::to_string(inside) + " -> " +
               std::to_string(dimension()) + " with biases and codewords",
           "sizes that do not fit");
    }
    directions_.emplace_back(normalized(level.codewords, inside),
                             static_cast<int>(level.codewords.size()) / inside, inside, WeightType::f32);
  }
}

int FactorizedVq::codebook_size(int codebook) const {
  return directions_[to_size(codebook)].size();
}

std::size_t FactorizedVq::workspace_bytes(int rows) const {
  std::size_t search = 0;
  for (const Codebook& directions : directions_) {
    search = std::max(search,
                      directions.workspace_bytes(rows) +
                          Workspace::padded(to_size(rows) * to_size(directions.dimension()) * sizeof(float)));
  }
  const std::size_t rows_of_latents = Workspace::padded(to_size(rows) * to_size(dimension()) * sizeof(float));
  return search + 2 * rows_of_latents + linear_workspace_bytes(rows);
}

void FactorizedVq::encode(const float* latents, int rows, int count, std::int32_t* tokens,
                          StepContext& context) const {
  expect_codebooks(*this, count);
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const std::size_t size = to_size(rows) * to_size(dimension());
  float* residual = workspace.array<float>(Workspace::Side::low, size).data();
  std::memcpy(residual, latents, size * sizeof(float));
  for (int i = 0; i < count; ++i) {
    const Level& level = levels_[to_size(i)];
    const Workspace::Mark level_mark = workspace.mark();
    const int inside = level.input.n();
    float* code = workspace.array<float>(Workspace::Side::low, to_size(rows) * to_size(inside)).data();
    project(residual, rows, level.input, level.input_bias, code, context);
    for (int row = 0; row < rows; ++row) normalize(code + row * inside, inside);
    directions_[to_size(i)].nearest(code, rows, tokens + i, count, context);
    workspace.release(Workspace::Side::low, level_mark);
    if (i + 1 < count) accumulate(to_size(i), tokens + i, rows, count, -1.0f, residual, context);
  }
  workspace.release(Workspace::Side::low, mark);
}

void FactorizedVq::decode(const std::int32_t* tokens, int rows, int count, float* latents,
                          StepContext& context) const {
  expect_codebooks(*this, count);
  std::fill_n(latents, to_size(rows) * to_size(dimension()), 0.0f);
  for (int i = 0; i < count; ++i) accumulate(to_size(i), tokens + i, rows, count, 1.0f, latents, context);
}

void FactorizedVq::accumulate(std::size_t index, const std::int32_t* tokens, int rows, int stride, float sign,
                              float* latents, StepContext& context) const {
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const Level& level = levels_[index];
  const std::size_t inside = to_size(level.output.k()), size = to_size(rows) * to_size(dimension());
  float* codes = workspace.array<float>(Workspace::Side::low, to_size(rows) * inside).data();
  for (int row = 0; row < rows; ++row) {
    std::memcpy(codes + to_size(row) * inside,
                level.codewords.data() + static_cast<std::size_t>(tokens[row * stride]) * inside,
                inside * sizeof(float));
  }
  float* out = workspace.array<float>(Workspace::Side::low, size).data();
  project(codes, rows, level.output, level.output_bias, out, context);
  for (std::size_t i = 0; i < size; ++i) latents[i] += sign * out[i];
  workspace.release(Workspace::Side::low, mark);
}

}  // namespace tessera
