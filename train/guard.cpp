#include "train/guard.h"

#include <algorithm>
#include <cmath>

#include "core/untrusted.h"
#include "train/text.h"

namespace tessera::train {

Result<void> LossGuard::check(std::int64_t step, std::span<const std::pair<std::string, double>> terms,
                              const std::string& batch) {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::damaged, "step " + std::to_string(step) + ": " + what + "; batch: " + batch};
  };
  for (const auto& [name, value] : terms) {
    if (!std::isfinite(value)) return wrong("loss " + in_quotes(name) + " is " + shortest(value));
    if (value == 0) continue;
    Term& term = terms_[name];
    const double size = std::abs(value);
    const double reference = std::max(term.mean, options_.least_reference);
    if (term.seen >= static_cast<double>(options_.settle) && size > options_.factor * reference) {
      if (++term.large < options_.patience) continue;
      return wrong("loss " + in_quotes(name) + " is " + rounded(value) + ", above " +
                   shortest(options_.factor) + " times its running mean " + rounded(term.mean) + " for " +
                   std::to_string(options_.patience) + " steps");
    }
    term.large = 0;
    // A plain mean until there are enough values for the decay.
    ++term.seen;
    term.mean += std::max(1 - options_.decay, 1 / term.seen) * (size - term.mean);
  }
  return {};
}

NamedTensors LossGuard::save() const {
  NamedTensors state;
  for (const auto& [name, term] : terms_) {
    Tensor tensor = Tensor::zeros({3}, DType::f64);
    const double values[3] = {term.mean, term.seen, term.large};
    std::ranges::copy(values, tensor.as<double>());
    state.emplace_back(name, std::move(tensor));
  }
  return state;
}

Result<void> LossGuard::restore(std::span<const std::pair<std::string, Tensor>> state) {
  std::map<std::string, Term, std::less<>> terms;
  for (const auto& [name, tensor] : state) {
    if (tensor.dtype() != DType::f64 || tensor.shape() != Shape{3}) {
      return Error{ErrorCode::mismatch, "state of the loss guard: expected " + in_quotes(name) +
                                            " as f64 [3], got " + name_of(tensor.dtype()) + " " +
                                            tensor.shape().str()};
    }
    const double* values = tensor.as<double>();
    terms[name] = {values[0], values[1], values[2]};
  }
  terms_ = std::move(terms);
  return {};
}

}  // namespace tessera::train
