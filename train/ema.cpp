#include "train/ema.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "train/named_state.h"

namespace tessera::train {

WeightAverage::WeightAverage(std::span<const Parameter> parameters, double decay)
    : decay_(decay), parameters_(parameters.begin(), parameters.end()) {
  if (!(decay >= 0 && decay < 1)) fail("weight_average", "a decay in [0, 1)", std::to_string(decay));
  for (const Parameter& parameter : parameters_) {
    Tensor average = Tensor::zeros(parameter.tensor.shape());
    std::memcpy(average.raw(), parameter.tensor.raw(), average.bytes());
    averages_.push_back(std::move(average));
  }
}

void WeightAverage::update(ThreadPool& pool, std::int64_t step) {
  const double warm = static_cast<double>(1 + step) / static_cast<double>(10 + step);
  const float rate = static_cast<float>(1 - std::min(decay_, warm));
  pool.parallel_for(static_cast<int>(averages_.size()), [&](int i) {
    float* average = averages_[static_cast<std::size_t>(i)].f32();
    const Tensor& values = parameters_[static_cast<std::size_t>(i)].tensor;
    const float* value = values.f32();
    const std::int64_t count = values.size();
    for (std::int64_t j = 0; j < count; ++j) average[j] += rate * (value[j] - average[j]);
  });
}

NamedTensors WeightAverage::save() const {
  NamedTensors state;
  for (std::size_t i = 0; i < averages_.size(); ++i) state.emplace_back(parameters_[i].name, averages_[i]);
  return state;
}

Result<void> WeightAverage::restore(std::span<const std::pair<std::string, Tensor>> state) {
  return copy_state(state, save(), "the weight average");
}

void WeightAverage::swap() {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    float* average = averages_[i].f32();
    std::swap_ranges(average, average + averages_[i].size(), parameters_[i].tensor.f32());
  }
}

}  // namespace tessera::train
