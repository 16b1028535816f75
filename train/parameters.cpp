#include "train/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/random.h"
#include "train/named_state.h"

namespace tessera::train {
namespace {

// FNV-1a (Fowler, Noll and Vo 1991), 64 bits.
std::uint64_t hash(const std::string& name) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

std::string describe(const Tensor& tensor) {
  return std::string(name_of(tensor.dtype())) + " " + tensor.shape().str();
}

}  // namespace

Tensor Parameters::add(const std::string& name, const Shape& shape, Init init) {
  Tensor values = Tensor::zeros(shape);
  float* v = values.f32();
  if (init.kind_ == Init::Kind::constant) {
    std::fill_n(v, values.size(), init.value_);
  } else {
    double deviation = init.value_;
    if (init.kind_ == Init::Kind::fan_in) {
      const std::int64_t outputs = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
      const std::int64_t inputs =
          std::max<std::int64_t>(values.size() / std::max<std::int64_t>(outputs, 1), 1);
      deviation = std::sqrt(static_cast<double>(init.value_) / static_cast<double>(inputs));
    }
    Random random(seed_, hash(name));
    for (std::int64_t i = 0; i < values.size(); ++i)
      v[i] = static_cast<float>(deviation * static_cast<double>(random.normal()));
  }
  return insert(name, values);
}

Tensor Parameters::add(const std::string& name, const Tensor& values) {
  if (!values.defined() || values.dtype() != DType::f32)
    fail("parameters", "f32 values for \"" + name + "\"", values.defined() ? describe(values) : "none");
  Tensor storage = Tensor::zeros(values.shape());
  std::memcpy(storage.raw(), values.raw(), values.bytes());
  return insert(name, storage);
}

Tensor Parameters::insert(const std::string& name, const Tensor& storage) {
  if (name.empty()) fail("parameters", "a name", "\"\"");
  if (!index_.emplace(name, items_.size()).second) fail("parameters", "a new name", "\"" + name + "\" again");
  items_.push_back({name, parameter(storage)});
  return items_.back().tensor;
}

Tensor Parameters::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? Tensor() : items_[found->second].tensor;
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const Parameter& item : items_) count += item.tensor.size();
  return count;
}

void Parameters::clear_gradients() {
  for (const Parameter& item : items_) clear_gradient(item.tensor);
}

NamedTensors Parameters::values() const {
  NamedTensors values;
  values.reserve(items_.size());
  for (const Parameter& item : items_) values.emplace_back(item.name, item.tensor.detached());
  return values;
}

Result<void> Parameters::set_values(std::span<const std::pair<std::string, Tensor>> values) {
  return copy_state(values, this->values(), "the model");
}

}  // namespace tessera::train
