// The trainable values of a model: tape leaves with names, in order of creation. Modules add theirs and keep
// the tensor; the optimizer goes over items(); checkpoints store values().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/autograd/tape.h"
#include "core/result.h"

namespace tessera::train {

/// How the first values of a parameter are made.
class Init {
 public:
  static Init zero() { return constant(0.0f); }
  static Init constant(float value) { return {Kind::constant, value}; }
  /// Normal, mean 0.
  static Init normal(float deviation) { return {Kind::normal, deviation}; }
  /// Normal with variance gain / fan-in (He et al. 2015), the fan-in being the product of all extents but the
  /// last: [K, N], [K, C, O], [KH, KW, C, O] as the ops take them. Gain 1 keeps the variance through a linear
  /// layer, 2 / (1 + slope^2) through a leaky ReLU behind it.
  static Init fan_in(float gain = 1.0f) { return {Kind::fan_in, gain}; }

 private:
  friend class Parameters;
  enum class Kind : std::uint8_t { constant, normal, fan_in };
  Init(Kind kind, float value) : kind_(kind), value_(value) {}
  Kind kind_;
  float value_;
};

struct Parameter {
  std::string name;
  Tensor tensor;  ///< a leaf of the tape; its storage is the parameter: copies of it see an optimizer's step
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class Parameters {
 public:
  /// A parameter's first values depend on the seed and its name, not on what was added before.
  explicit Parameters(std::uint64_t seed = 0) : seed_(seed) {}
  Parameters(Parameters&&) = default;  // not copied: both would share their storage
  Parameters& operator=(Parameters&&) = default;

  /// Adds a parameter and returns it. Throws UsageError for a name that is empty or taken.
  Tensor add(const std::string& name, const Shape& shape, Init init = Init::fan_in());
  /// The same with given values (f32), which are copied.
  Tensor add(const std::string& name, const Tensor& values);

  /// The parameter of this name; an undefined tensor if there is none.
  Tensor find(const std::string& name) const;
  /// All, in order of creation.
  const std::vector<Parameter>& items() const { return items_; }
  /// Number of values in all of them.
  std::int64_t count() const;
  /// Forgets the gradients of all.
  void clear_gradients();

  /// Names and values, off the tape, in order of creation. They share the parameters' storage.
  NamedTensors values() const;
  /// Copies values in, in any order. The names must be exactly those of the parameters, each with its shape,
  /// in f32; otherwise nothing changes and the error (mismatch) names the first that does not fit.
  Result<void> set_values(std::span<const std::pair<std::string, Tensor>> values);

 private:
  Tensor insert(const std::string& name, const Tensor& storage);

  std::uint64_t seed_;
  std::vector<Parameter> items_;
  std::unordered_map<std::string, std::size_t> index_;  // of items_, by name
};

}  // namespace tessera::train
