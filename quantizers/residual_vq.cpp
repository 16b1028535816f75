#include "quantizers/residual_vq.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/linear.h"
#include "quantizers/path_search.h"

namespace tessera {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

ResidualVq::ResidualVq(std::vector<Codebook> codebooks, int paths)
    : codebooks_(std::move(codebooks)), paths_(paths) {
  if (codebooks_.empty()) fail("residual_vq", "at least one codebook", "none");
  for (const Codebook& codebook : codebooks_) {
    if (codebook.dimension() != dimension()) {
      fail("residual_vq", "codebooks of dimension " + std::to_string(dimension()),
           std::to_string(codebook.dimension()));
    }
  }
  if (paths < 1 || paths > kMaxSearchPaths) {
    fail("residual_vq", "1 to " + std::to_string(kMaxSearchPaths) + " search paths", std::to_string(paths));
  }
}

std::size_t ResidualVq::workspace_bytes(int rows) const {
  if (paths_ > 1) return path_search_bytes(codebooks_, rows, paths_);
  std::size_t search = 0;
  for (const Codebook& codebook : codebooks_) search = std::max(search, codebook.workspace_bytes(rows));
  return search + Workspace::padded(to_size(rows) * to_size(dimension()) * sizeof(float));
}

void ResidualVq::encode(const float* latents, int rows, int count, std::int32_t* tokens,
                        StepContext& context) const {
  encode_strided(latents, rows, count, tokens, count, context);
}

void ResidualVq::decode(const std::int32_t* tokens, int rows, int count, float* latents, StepContext&) const {
  decode_strided(tokens, count, rows, count, latents);
}

void ResidualVq::encode_strided(const float* latents, int rows, int count, std::int32_t* tokens,
                                std::ptrdiff_t token_stride, StepContext& context) const {
  expect_codebooks(*this, count);
  if (paths_ > 1) {
    return search_paths(std::span(codebooks_).first(to_size(count)), paths_, latents, rows, tokens,
                        token_stride, context);
  }
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const std::size_t size = to_size(rows) * to_size(dimension());
  float* residual = workspace.array<float>(Workspace::Side::low, size).data();
  std::memcpy(residual, latents, size * sizeof(float));
  for (int i = 0; i < count; ++i) {
    const Codebook& codebook = codebooks_[to_size(i)];
    codebook.nearest(residual, rows, tokens + i, token_stride, context);
    if (i + 1 == count) break;
    for (int row = 0; row < rows; ++row) {
      codebook.accumulate(tokens[row * token_stride + i], -1.0f,
                          residual + to_size(row) * to_size(dimension()));
    }
  }
  workspace.release(Workspace::Side::low, mark);
}

void ResidualVq::decode_strided(const std::int32_t* tokens, std::ptrdiff_t token_stride, int rows, int count,
                                float* latents) const {
  expect_codebooks(*this, count);
  std::fill_n(latents, to_size(rows) * to_size(dimension()), 0.0f);
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < count; ++i) {
      codebooks_[to_size(i)].accumulate(tokens[row * token_stride + i], 1.0f,
                                        latents + to_size(row) * to_size(dimension()));
    }
  }
}

SplitResidualVq::SplitResidualVq(Half semantic, Half acoustic)
    : semantic_(std::move(semantic)), acoustic_(std::move(acoustic)) {
  for (const Half* half : {&semantic_, &acoustic_}) {
    const int inside = half->quantizer.dimension(), outside = semantic_.input.k();
    if (half->input.k() != outside || half->input.n() != inside || half->output.k() != inside ||
        half->output.n() != outside) {
      fail("split_residual_vq",
           "projections " + std::to_string(outside) + " -> " + std::to_string(inside) + " and back",
           std::to_string(half->input.k()) + " -> " + std::to_string(half->input.n()) + ", " +
               std::to_string(half->output.k()) + " -> " + std::to_string(half->output.n()));
    }
  }
}

int SplitResidualVq::codebook_size(int codebook) const {
  const int first = semantic_.quantizer.codebooks();
  return codebook < first ? semantic_.quantizer.codebook_size(codebook)
                          : acoustic_.quantizer.codebook_size(codebook - first);
}

std::size_t SplitResidualVq::workspace_bytes(int rows) const {
  const int inside = std::max(semantic_.quantizer.dimension(), acoustic_.quantizer.dimension());
  return std::max(semantic_.quantizer.workspace_bytes(rows), acoustic_.quantizer.workspace_bytes(rows)) +
         Workspace::padded(to_size(rows) * to_size(inside) * sizeof(float)) + linear_workspace_bytes(rows);
}

void SplitResidualVq::encode(const float* latents, int rows, int count, std::int32_t* tokens,
                             StepContext& context) const {
  expect_codebooks(*this, count);
  const int first = std::min(count, semantic_.quantizer.codebooks());
  const auto half = [&](const Half& part, int codebooks, std::int32_t* to) {
    if (codebooks == 0) return;
    Workspace& workspace = context.workspace;
    const Workspace::Mark mark = workspace.mark();
    float* inside =
        workspace.array<float>(Workspace::Side::low, to_size(rows) * to_size(part.input.n())).data();
    linear({.x = latents, .rows = rows, .weights = &part.input, .out = inside}, Workspace::Side::low,
           context);
    part.quantizer.encode_strided(inside, rows, codebooks, to, count, context);
    workspace.release(Workspace::Side::low, mark);
  };
  half(semantic_, first, tokens);
  half(acoustic_, count - first, tokens + first);
}

void SplitResidualVq::decode(const std::int32_t* tokens, int rows, int count, float* latents,
                             StepContext& context) const {
  expect_codebooks(*this, count);
  const int first = std::min(count, semantic_.quantizer.codebooks());
  const auto half = [&](const Half& part, int codebooks, const std::int32_t* from, GemmStart start) {
    if (codebooks == 0) return;
    Workspace& workspace = context.workspace;
    const Workspace::Mark mark = workspace.mark();
    float* inside =
        workspace.array<float>(Workspace::Side::low, to_size(rows) * to_size(part.output.k())).data();
    part.quantizer.decode_strided(from, count, rows, codebooks, inside);
    linear({.x = inside, .rows = rows, .weights = &part.output, .start = start, .out = latents},
           Workspace::Side::low, context);
    workspace.release(Workspace::Side::low, mark);
  };
  half(semantic_, first, tokens, GemmStart::zero);
  half(acoustic_, count - first, tokens + first, GemmStart::output);
}

}  // namespace tessera
