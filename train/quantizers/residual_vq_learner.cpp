#include "train/quantizers/residual_vq_learner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/autograd/op.h"
#include "core/norm.h"
#include "quantizers/residual_vq.h"
#include "train/quantizers/known_gradient.h"

namespace tessera::train {
namespace {

double sum_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum;
}

}  // namespace

void ResidualVqLearner::initialize(const float* rows, int count, ThreadPool& pool) {
  const std::size_t width = to_size(dimension());
  std::vector<float> residual(rows, rows + to_size(count) * width);
  std::vector<std::int32_t> indices(to_size(count));
  for (int level = 0; level < codebooks(); ++level) {
    Random random = random_for_start(level);
    const int size = options().codebook_size;
    const std::vector<float> centres =
        kmeans(residual.data(), count, dimension(), size, options().kmeans, random, pool);
    set_codewords(level, centres);
    nearest_rows(Codebook(centres, size, dimension(), WeightType::f32), residual.data(), count,
                 indices.data(), pool);
    for (std::size_t i = 0; i < residual.size(); ++i)
      residual[i] -= centres[to_size(indices[i / width]) * width + i % width];
  }
}

Quantized ResidualVqLearner::forward(Tape& tape, const Tensor& z, std::span<const int> active, bool collect) {
  Quantized result;
  result.tokens = encode(z, active, tape.pool());
  const std::int64_t width = dimension(), rows = z.size() / width, length = z.dim(1), all = codebooks();
  const std::int32_t* tokens = result.tokens.as<std::int32_t>();
  const int levels = *std::max_element(active.begin(), active.end());

  Tensor residual = tape.make(z.shape()), sum = tape.zeros(z.shape()), first;
  std::memcpy(residual.raw(), z.raw(), z.bytes());
  Tensor pull = tape.zeros(z.shape());  // the sum over levels of residual - codeword
  std::vector<float> errors(to_size(rows)), squares(to_size(rows));
  std::vector<std::int32_t> indices(to_size(rows));
  std::vector<KnownGradient> codebook_gradients;
  for (int level = 0; level < levels; ++level) {
    for (std::int64_t row = 0; row < rows; ++row) indices[to_size(row)] = tokens[row * all + level];
    Tensor gradient = observe(level, residual.f32(), indices, collect, tape.pool());
    if (!averages()) codebook_gradients.push_back({codeword_parameter(level), std::move(gradient)});
    const Tensor book = codewords(level);
    ops::for_rows(tape.pool(), rows, 4 * width, [&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t row = begin; row < begin + count; ++row) {
        if (indices[to_size(row)] < 0) continue;
        const float* codeword = book.f32() + indices[to_size(row)] * width;
        float* left = residual.f32() + row * width;
        float* to = sum.f32() + row * width;
        float* back = pull.f32() + row * width;
        for (std::int64_t d = 0; d < width; ++d) {  // as ResidualVq does: each sum rounded, in this order
          to[d] += codeword[d];
          left[d] -= codeword[d];
          back[d] += left[d];
        }
        errors[to_size(row)] += fixed_dot(left, left, to_size(width));
      }
    });
    if (level == 0) {
      first = tape.make(z.shape());
      std::memcpy(first.raw(), sum.raw(), sum.bytes());
    }
  }

  std::int64_t used = 0;  // rows, over all levels
  for (const int count : active) used += count * length;
  double mean_square = 1;
  if (options().normalize_loss) {
    ops::for_rows(tape.pool(), rows, width, [&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t row = begin; row < begin + count; ++row) {
        const float* x = z.f32() + row * width;
        squares[to_size(row)] = fixed_dot(x, x, to_size(width));
      }
    });
    mean_square = std::max(sum_of(squares) / static_cast<double>(z.size()), 1e-12);
  }
  const double scale = 1 / (static_cast<double>(used * width) * mean_square);
  const float loss = static_cast<float>(sum_of(errors) * scale);
  result.latents = straight_through(tape, sum, z);
  result.first = straight_through(tape, first, z);
  const KnownGradient to_z{z, pull, static_cast<float>(2 * scale)};
  result.commitment = with_gradients(tape, loss, {&to_z, 1});
  if (!averages()) {
    for (KnownGradient& gradient : codebook_gradients) gradient.factor = static_cast<float>(scale);
    result.codebook_loss = with_gradients(tape, loss, codebook_gradients);
  }
  return result;
}

std::unique_ptr<const Quantizer> ResidualVqLearner::runtime() const {
  std::vector<Codebook> books;
  for (int i = 0; i < codebooks(); ++i) {
    const Tensor words = codewords(i);
    books.emplace_back(std::span(words.f32(), to_size(words.size())), options().codebook_size, dimension(),
                       WeightType::f32);
  }
  return std::make_unique<ResidualVq>(std::move(books), options().search_paths);
}

}  // namespace tessera::train
