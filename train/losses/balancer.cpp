#include "train/losses/balancer.h"

#include <cmath>
#include <cstddef>

#include "core/autograd/elementwise.h"
#include "core/autograd/op.h"
#include "core/error.h"
#include "core/norm.h"
#include "train/named_state.h"
#include "train/quantizers/known_gradient.h"

namespace tessera::train {
namespace {

constexpr const char* kOp = "balancer";

// The mean over items of the norm of each.
double mean_norm(const Tensor& gradient) {
  const std::int64_t items = gradient.dim(0);
  const auto size = static_cast<std::size_t>(gradient.size() / items);
  double sum = 0;
  for (std::int64_t i = 0; i < items; ++i) {
    const float* g = gradient.f32() + i * static_cast<std::int64_t>(size);
    sum += std::sqrt(static_cast<double>(fixed_dot(g, g, size)));
  }
  return sum / static_cast<double>(items);
}

}  // namespace

Balancer::Balancer(const std::map<std::string, float>& weights, const BalancerOptions& options)
    : options_(options) {
  if (!(options.total_norm > 0)) fail(kOp, "a total norm above 0", std::to_string(options.total_norm));
  if (!(options.decay >= 0 && options.decay < 1))
    fail(kOp, "a decay in [0, 1)", std::to_string(options.decay));
  if (!(options.epsilon > 0)) fail(kOp, "an epsilon above 0", std::to_string(options.epsilon));
  for (const auto& [name, weight] : weights) {
    if (!(weight > 0 && std::isfinite(weight))) {
      fail(kOp, "a weight above 0 for " + name, std::to_string(weight));
    }
    Entry& entry = entries_[name];
    entry.weight = weight;
    entry.average = Tensor::zeros({2}, DType::f64);
  }
}

Balancer::Entry& Balancer::entry(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail(kOp, "losses that have weights", "\"" + name + "\"");
  return found->second;
}

double Balancer::averaged(const Entry& entry, double norm) const {
  Tensor average = entry.average;
  double &sum = average.as<double>()[0], &count = average.as<double>()[1];
  if (std::isfinite(norm)) {
    sum = sum * options_.decay + norm;
    count = count * options_.decay + 1;
  }
  return count > 0 ? sum / count : 0.0;
}

Tensor Balancer::combine(Tape& tape, const Tensor& output, std::span<const NamedLoss> losses) {
  ops::expect_f32(kOp, "output", output);
  if (output.shape().rank() < 1 || output.size() < 1) fail(kOp, "output [B, ...]", output.shape().str());
  if (losses.empty()) fail(kOp, "at least one loss", "none");
  double total = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (losses[i].name == losses[j].name) fail(kOp, "each loss once", "\"" + losses[i].name + "\" twice");
    }
    total += entry(losses[i].name).weight;
  }
  terms_.clear();
  const Tensor gradient = balanced(tape, output, losses, total);
  float value = 0;
  for (const Term& term : terms_) value += entry(term.name).weight * term.loss;
  KnownGradient known;
  known.input = output;
  known.gradient = gradient;
  return with_gradients(tape, value, {&known, 1});
}

Tensor Balancer::balanced(Tape& tape, const Tensor& output, std::span<const NamedLoss> losses, double total) {
  Tensor sum = tape.zeros(output.shape());
  for (const NamedLoss& loss : losses) {
    const Tensor leaf = output.recorded() ? parameter(output) : output;
    const std::size_t since = tape.recorded();
    const Tensor value = loss.loss(tape, leaf);
    ops::expect_shape(kOp, ("loss " + loss.name).c_str(), value, {1});
    Term term;
    term.name = loss.name;
    term.loss = *value.f32();
    if (value.recorded()) {
      Tensor one = tape.make({1});
      *one.f32() = 1.0f;
      tape.backward(value, one, since);
    }
    const Tensor gradient = gradient_of(leaf);
    if (gradient.defined()) {
      const double norm = mean_norm(gradient);
      const Entry& e = entry(loss.name);
      const double scale = options_.total_norm * (e.weight / total) / (averaged(e, norm) + options_.epsilon);
      ops::add_to(tape, ops::affine(tape, gradient, static_cast<float>(scale)), sum);
      term.gradient_norm = static_cast<float>(norm);
    }
    terms_.push_back(std::move(term));
  }
  return sum;
}

NamedTensors Balancer::state() const {
  NamedTensors tensors;
  for (const auto& [name, entry] : entries_) tensors.emplace_back(name, entry.average);
  return tensors;
}

Result<void> Balancer::restore(std::span<const std::pair<std::string, Tensor>> state) {
  return copy_state(state, this->state(), "the loss balancer");
}

}  // namespace tessera::train
