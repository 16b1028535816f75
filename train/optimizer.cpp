#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/untrusted.h"
#include "train/adamw_cpu.h"
#include "train/named_state.h"

namespace tessera::train {
namespace {

constexpr std::int64_t kBlock = 16384;  // values that one thread takes at a time

/// A run of one parameter's values.
struct Block {
  std::size_t parameter;
  std::int64_t first;
  std::int64_t count;
};

/// All that have a gradient, in order.
std::vector<Block> blocks_of(std::span<const Parameter> parameters) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor gradient = gradient_of(parameters[i].tensor);
    if (!gradient.defined()) continue;
    for (std::int64_t first = 0; first < gradient.size(); first += kBlock) {
      blocks.push_back({i, first, std::min(kBlock, gradient.size() - first)});
    }
  }
  return blocks;
}

std::vector<const float*> gradients_of(std::span<const Parameter> parameters) {
  std::vector<const float*> gradients;
  for (const Parameter& parameter : parameters) gradients.push_back(gradient_of(parameter.tensor).f32());
  return gradients;
}

// Squares of floats are exact in double. Element i goes to partial sum i mod 8.
double sum_of_squares(const float* x, std::int64_t count) {
  constexpr std::int64_t kSums = 8;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t j = 0; j < kSums; ++j) sums[j] += double{x[i + j]} * double{x[i + j]};
  }
  for (std::int64_t j = 0; i < count; ++i, ++j) sums[j] += double{x[i]} * double{x[i]};
  for (std::int64_t half = kSums / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

GradientNorm norm_of(std::span<const Parameter> parameters, std::span<const Block> blocks,
                     std::span<const float* const> gradients, ThreadPool& pool) {
  std::vector<double> sums(blocks.size());
  pool.parallel_for(static_cast<int>(blocks.size()), [&](int i) {
    const Block& block = blocks[static_cast<std::size_t>(i)];
    sums[static_cast<std::size_t>(i)] = sum_of_squares(gradients[block.parameter] + block.first, block.count);
  });
  GradientNorm norm;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!std::isfinite(sums[i]) && norm.bad.empty()) norm.bad = parameters[blocks[i].parameter].name;
    norm.value += sums[i];
  }
  norm.value = std::sqrt(norm.value);
  return norm;
}

void check(const AdamWOptions& options) {
  const auto in_unit = [](double beta) { return beta >= 0 && beta < 1; };
  if (!in_unit(options.beta1) || !in_unit(options.beta2)) {
    fail("adamw", "betas in [0, 1)", std::to_string(options.beta1) + " and " + std::to_string(options.beta2));
  }
  if (!(options.epsilon > 0)) fail("adamw", "epsilon above 0", std::to_string(options.epsilon));
  if (!(options.weight_decay >= 0)) fail("adamw", "weight decay >= 0", std::to_string(options.weight_decay));
}

}  // namespace

GradientNorm gradient_norm(std::span<const Parameter> parameters, ThreadPool& pool) {
  return norm_of(parameters, blocks_of(parameters), gradients_of(parameters), pool);
}

AdamW::AdamW(std::span<const Parameter> parameters, const AdamWOptions& options)
    : options_(options), parameters_(parameters.begin(), parameters.end()) {
  check(options);
  for (const Parameter& parameter : parameters_) {
    if (!parameter.tensor.recorded() || parameter.tensor.dtype() != DType::f32) {
      fail("adamw", "parameters in f32", parameter.name);
    }
    State state;
    state.mean = Tensor::zeros(parameter.tensor.shape());
    state.square = Tensor::zeros(parameter.tensor.shape());
    state.steps = Tensor::zeros({1}, DType::i64);
    const auto group = std::ranges::find_if(
        options_.groups, [&](const ParameterGroup& g) { return parameter.name.starts_with(g.prefix); });
    const bool grouped = group != options_.groups.end();
    state.learning_rate = grouped ? group->learning_rate : 1.0;
    state.weight_decay = parameter.tensor.shape().rank() <= 1
                             ? 0.0
                             : options_.weight_decay * (grouped ? group->weight_decay : 1.0);
    states_.push_back(std::move(state));
  }
}

Result<double> AdamW::step(ThreadPool& pool, double learning_rate, double clip) {
  const std::vector<Block> blocks = blocks_of(parameters_);
  const std::vector<const float*> gradients = gradients_of(parameters_);
  const GradientNorm norm = norm_of(parameters_, blocks, gradients, pool);
  if (!norm.bad.empty()) {
    return Error{ErrorCode::damaged, "the gradient of " + in_quotes(norm.bad) + " is not finite"};
  }
  std::vector<AdamWUpdate> updates(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients[i]) continue;
    State& state = states_[i];
    const double t = static_cast<double>(++*state.steps.as<std::int64_t>());
    const double rate = learning_rate * state.learning_rate;
    AdamWUpdate& update = updates[i];
    update.gradient_factor = clip > 0 && norm.value > clip ? static_cast<float>(clip / norm.value) : 1.0f;
    update.mean_rate = static_cast<float>(1 - options_.beta1);
    update.square_keep = static_cast<float>(options_.beta2);
    update.square_rate = static_cast<float>(1 - options_.beta2);
    update.value_keep = static_cast<float>(1 - rate * state.weight_decay);
    // Moments start at 0: dividing by 1 - beta^t makes up for it.
    update.step = static_cast<float>(rate / (1 - exact_pow(options_.beta1, t)));
    update.root_factor = static_cast<float>(1 / std::sqrt(1 - exact_pow(options_.beta2, t)));
    update.epsilon = static_cast<float>(options_.epsilon);
  }
  pool.parallel_for(static_cast<int>(blocks.size()), [&](int i) {
    const Block& block = blocks[static_cast<std::size_t>(i)];
    State& state = states_[block.parameter];
    adamw_update(updates[block.parameter], gradients[block.parameter] + block.first,
                 state.mean.f32() + block.first, state.square.f32() + block.first,
                 parameters_[block.parameter].tensor.f32() + block.first,
                 static_cast<std::size_t>(block.count));
  });
  return norm.value;
}

NamedTensors AdamW::save() const {
  NamedTensors state;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    state.emplace_back(parameters_[i].name + ".mean", states_[i].mean);
    state.emplace_back(parameters_[i].name + ".square", states_[i].square);
    state.emplace_back(parameters_[i].name + ".steps", states_[i].steps);
  }
  return state;
}

Result<void> AdamW::restore(std::span<const std::pair<std::string, Tensor>> state) {
  return copy_state(state, save(), "the optimizer");
}

}  // namespace tessera::train
