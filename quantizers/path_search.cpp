#include "quantizers/path_search.h"

#include <algorithm>
#include <cmath>

#include "core/linear.h"
#include "core/norm.h"
#include "core/search.h"

namespace tessera {
namespace {

constexpr int kRows = 8;  // searched at a time: their scores stay in the cache

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

int largest_size(std::span<const Codebook> codebooks) {
  int size = 0;
  for (const Codebook& codebook : codebooks) size = std::max(size, codebook.size());
  return size;
}

// What is known of the paths of a block of rows after a codebook: all [rows, paths, ...].
struct Paths {
  static Paths make(Workspace& workspace, int count, int dimension, int codebooks) {
    return {workspace.array<float>(Workspace::Side::low, to_size(count) * to_size(dimension)).data(),
            workspace.array<float>(Workspace::Side::low, to_size(count)).data(),
            workspace.array<std::int32_t>(Workspace::Side::low, to_size(count) * to_size(codebooks)).data()};
  }
  float* residuals;      // [..., dimension]
  float* half_energies;  // |residual|^2 / 2
  std::int32_t* tokens;  // [..., codebooks]
};

// The search of one row: the largest of scores - half energy over all codewords of all paths, one by one.
class Ranking {
 public:
  /// scores [paths, size]: x.c - |c|^2 / 2; those that were taken are overwritten.
  Ranking(float* scores, int size, const float* half_energies, int paths)
      : scores_(scores), size_(size), half_energies_(half_energies), paths_(paths) {
    for (int path = 0; path < paths; ++path) find(path);
  }
  struct Choice {
    int path;
    std::int32_t index;
  };
  Choice take() {
    int best = 0;
    for (int path = 1; path < paths_; ++path) {
      if (values_[path] > values_[best]) best = path;
    }
    const Choice choice = {best, indices_[best]};
    scores_[to_size(best) * to_size(size_) + to_size(choice.index)] = -HUGE_VALF;
    find(best);
    return choice;
  }

 private:
  void find(int path) {
    const float* scores = scores_ + to_size(path) * to_size(size_);
    argmax_rows(scores, 1, size_, size_, &indices_[path]);
    values_[path] = scores[indices_[path]] - half_energies_[path];
  }

  float* scores_;
  int size_;
  const float* half_energies_;
  int paths_;
  std::int32_t indices_[kMaxSearchPaths] = {};
  float values_[kMaxSearchPaths] = {};
};

// One block of rows.
void search_block(std::span<const Codebook> codebooks, int paths, const float* latents, int rows,
                  std::int32_t* tokens, std::ptrdiff_t token_stride, StepContext& context) {
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const int dimension = codebooks.front().dimension(), levels = static_cast<int>(codebooks.size());
  const std::size_t width = to_size(dimension);
  Paths now = Paths::make(workspace, rows * paths, dimension, levels);
  Paths next = Paths::make(workspace, rows * paths, dimension, levels);
  float* scores = workspace
                      .array<float>(Workspace::Side::low,
                                    to_size(rows) * to_size(paths) * to_size(largest_size(codebooks)))
                      .data();
  std::copy_n(latents, to_size(rows) * width, now.residuals);
  std::fill_n(now.half_energies, rows, 0.0f);
  int live = 1;  // paths of each row
  for (int level = 0; level < levels; ++level) {
    const Codebook& codebook = codebooks[to_size(level)];
    const bool ends = level == 0 || level + 1 == levels;
    const int keep =
        ends ? 1 : static_cast<int>(std::min<std::int64_t>(paths, std::int64_t{live} * codebook.size()));
    codebook.scores(now.residuals, rows * live, scores, context);
    for (int row = 0; row < rows; ++row) {
      Ranking ranking(scores + to_size(row * live) * to_size(codebook.size()), codebook.size(),
                      now.half_energies + row * live, live);
      for (int k = 0; k < keep; ++k) {
        const Ranking::Choice choice = ranking.take();
        const int from = row * live + choice.path, to = row * keep + k;
        std::int32_t* path = next.tokens + to_size(to) * to_size(levels);
        std::copy_n(now.tokens + to_size(from) * to_size(levels), level, path);
        path[level] = choice.index;
        float* residual = next.residuals + to_size(to) * width;
        std::copy_n(now.residuals + to_size(from) * width, width, residual);
        codebook.accumulate(choice.index, -1.0f, residual);
        next.half_energies[to] = 0.5f * fixed_dot(residual, residual, width);
      }
    }
    std::swap(now, next);
    live = keep;
  }
  for (int row = 0; row < rows; ++row) {
    std::copy_n(now.tokens + to_size(row) * to_size(levels), levels, tokens + row * token_stride);
  }
  workspace.release(Workspace::Side::low, mark);
}

}  // namespace

std::size_t path_search_bytes(std::span<const Codebook> codebooks, int rows, int paths) {
  const std::size_t count = to_size(std::min(rows, kRows)) * to_size(paths);
  const std::size_t per_set =
      Workspace::padded(count * to_size(codebooks.front().dimension()) * sizeof(float)) +
      Workspace::padded(count * sizeof(float)) +
      Workspace::padded(count * codebooks.size() * sizeof(std::int32_t));
  return 2 * per_set + Workspace::padded(count * to_size(largest_size(codebooks)) * sizeof(float)) +
         linear_workspace_bytes(static_cast<int>(count));
}

void search_paths(std::span<const Codebook> codebooks, int paths, const float* latents, int rows,
                  std::int32_t* tokens, std::ptrdiff_t token_stride, StepContext& context) {
  const int dimension = codebooks.front().dimension();
  for (int first = 0; first < rows; first += kRows) {
    search_block(codebooks, paths, latents + to_size(first) * to_size(dimension),
                 std::min(kRows, rows - first), tokens + first * token_stride, token_stride, context);
  }
}

}  // namespace tessera
