#include "train/quantizers/factorized_vq_learner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/autograd/conv.h"
#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "core/error.h"
#include "core/norm.h"
#include "quantizers/factorized_vq.h"
#include "train/quantizers/known_gradient.h"

namespace tessera::train {
namespace {

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.f32(), tensor.f32() + tensor.size()};
}

}  // namespace

FactorizedVqLearner::FactorizedVqLearner(const QuantizerLearnerOptions& options, Parameters& parameters,
                                         const std::string& prefix, int code_dimension)
    : QuantizerLearner(options, code_dimension, parameters, prefix) {
  for (int i = 0; i < codebooks(); ++i) {
    const std::string name = prefix + std::to_string(i);
    Level level;
    level.input = parameters.add(name + ".input.weight", Shape{dimension(), width()});
    level.input_bias = parameters.add(name + ".input.bias", Shape{width()}, Init::zero());
    level.output = parameters.add(name + ".output.weight", Shape{width(), dimension()});
    level.output_bias = parameters.add(name + ".output.bias", Shape{dimension()}, Init::zero());
    levels_.push_back(std::move(level));
  }
}

Tensor FactorizedVqLearner::code_of(Tape& tape, int codebook, const Tensor& residual) const {
  const Level& level = levels_[to_size(codebook)];
  const Tensor code = ops::matmul(tape, residual, level.input, level.input_bias);
  return averages() ? ops::l2_normalize(tape, code) : code;
}

Tensor FactorizedVqLearner::look_up(Tape& tape, int codebook, std::span<const std::int32_t> indices,
                                    const Shape& shape) const {
  Tensor rows = tape.zeros(shape);
  const Tensor book = codewords(codebook);
  for (std::size_t row = 0; row < indices.size(); ++row) {
    if (indices[row] < 0) continue;
    std::copy_n(book.f32() + indices[row] * width(), width(), rows.f32() + row * to_size(width()));
  }
  return rows;
}

void FactorizedVqLearner::initialize(const float* rows, int count, ThreadPool& pool) {
  Tape tape(pool);
  const Tape::Pause pause(tape);
  Tensor residual = Tensor::zeros({count, dimension()});
  std::copy_n(rows, residual.size(), residual.f32());
  std::vector<std::int32_t> indices(to_size(count));
  for (int i = 0; i < codebooks(); ++i) {
    const Tensor code = code_of(tape, i, residual);
    const Tensor direction = ops::l2_normalize(tape, code);
    Random random = random_for_start(i);
    const int size = options().codebook_size;
    std::vector<float> centres =
        kmeans(direction.f32(), count, width(), size, options().kmeans, random, pool);
    // Codes without unit length are compared with the codewords as they are: make them of the codes' size.
    const float norm =
        ops::mean(tape, ops::sqrt(tape, ops::sum_last(tape, ops::square(tape, code)), 0.0f)).f32()[0];
    if (!averages()) {
      for (float& value : centres) value *= norm;
    }
    set_codewords(i, centres);
    const Tensor book = ops::l2_normalize(tape, codewords(i));
    nearest_rows(Codebook(std::span(book.f32(), to_size(book.size())), size, width(), WeightType::f32),
                 direction.f32(), count, indices.data(), pool);
    const Tensor chosen = look_up(tape, i, indices, code.shape());
    const Level& level = levels_[to_size(i)];
    residual = ops::sub(tape, residual, ops::matmul(tape, chosen, level.output, level.output_bias));
  }
}

Quantized FactorizedVqLearner::forward(Tape& tape, const Tensor& z, std::span<const int> active,
                                       bool collect) {
  const Tape::InPrecision exact(tape, Precision::f32);
  Quantized result;
  result.tokens = encode(z, active, tape.pool());
  const std::int64_t rows = z.size() / dimension(), length = z.dim(1), all = codebooks();
  const std::int32_t* tokens = result.tokens.as<std::int32_t>();
  const int levels = *std::max_element(active.begin(), active.end());
  std::int64_t used = 0;  // rows, over all levels
  for (const int count : active) used += count * length;

  Tensor residual = z;
  result.latents = tape.zeros(z.shape());
  std::vector<std::int32_t> indices(to_size(rows));
  std::vector<KnownGradient> commitment, codebook;
  double loss = 0;
  for (int i = 0; i < levels; ++i) {
    for (std::int64_t row = 0; row < rows; ++row) indices[to_size(row)] = tokens[row * all + i];
    const Tensor code = code_of(tape, i, residual);
    const Tensor chosen = look_up(tape, i, indices, code.shape());
    Tensor codebook_gradient = observe(i, code.f32(), indices, collect, tape.pool());

    double square = 0, error = 0;  // of the codes; of what the codewords miss
    std::int64_t here = 0;
    Tensor difference = tape.zeros(code.shape());
    for (std::int64_t row = 0; row < rows; ++row) {
      if (indices[to_size(row)] < 0) continue;
      const float* x = code.f32() + row * width();
      float* miss = difference.f32() + row * width();
      for (int d = 0; d < width(); ++d) miss[d] = x[d] - chosen.f32()[row * width() + d];
      square += static_cast<double>(fixed_dot(x, x, to_size(width())));
      error += static_cast<double>(fixed_dot(miss, miss, to_size(width())));
      ++here;
    }
    const double mean_square =
        options().normalize_loss ? std::max(square / static_cast<double>(here * width()), 1e-12) : 1.0;
    const double scale = 1 / (static_cast<double>(used * width()) * mean_square);
    loss += error * scale;
    commitment.push_back({code, difference, static_cast<float>(2 * scale)});
    if (!averages()) {
      codebook.push_back({codeword_parameter(i), std::move(codebook_gradient), static_cast<float>(scale)});
    }

    const Level& level = levels_[to_size(i)];
    const Tensor out =
        ops::matmul(tape, straight_through(tape, chosen, code), level.output, level.output_bias);
    Tensor mask = tape.make({z.dim(0)});
    for (std::int64_t item = 0; item < z.dim(0); ++item)
      mask.f32()[item] = active[to_size(item)] > i ? 1.0f : 0.0f;
    const bool everywhere = here == rows;
    result.latents = ops::add(tape, result.latents, everywhere ? out : ops::mul_items(tape, out, mask));
    if (i == 0) result.first = result.latents;
    if (i + 1 < levels) residual = ops::sub(tape, residual, out);
  }
  result.commitment = with_gradients(tape, static_cast<float>(loss), commitment);
  if (!averages()) result.codebook_loss = with_gradients(tape, static_cast<float>(loss), codebook);
  return result;
}

std::unique_ptr<const Quantizer> FactorizedVqLearner::runtime() const {
  std::vector<FactorizedVq::Level> levels;
  for (int i = 0; i < codebooks(); ++i) {
    const Level& from = levels_[to_size(i)];
    FactorizedVq::Level level;
    level.input = PackedMatrix::pack(from.input.f32(), dimension(), width(), width(), 1, WeightType::f32);
    level.input_bias = values_of(from.input_bias);
    level.output =
        PackedMatrix::pack(from.output.f32(), width(), dimension(), dimension(), 1, WeightType::f32);
    level.output_bias = values_of(from.output_bias);
    level.codewords = values_of(codewords(i));
    levels.push_back(std::move(level));
  }
  return std::make_unique<FactorizedVq>(std::move(levels));
}

}  // namespace tessera::train
