// Small TensorFlow Lite graphs of fixed shapes, as a chain of a few operations on f32: what the deep lattice
// network (You et al. 2017) of ViSQOL's speech mode is made of. Shapes are those that the file states;
// integers, which only compute shapes, are left out. Not a general interpreter: anything else is refused at
// load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace tessera::metrics {

class TfliteGraph {
 public:
  static constexpr std::size_t kMaxElements = std::size_t{1} << 24;  ///< of all tensors together

  /// Errors: io; format; unsupported (an operation, shape or option that is not handled).
  static Result<TfliteGraph> open(const std::string& path);
  static Result<TfliteGraph> parse(std::span<const std::byte> bytes, const std::string& name);

  /// Names of the inputs, each one number, as the file's signature gives them.
  std::vector<std::string> inputs() const;
  /// The first output for inputs by name. Throws UsageError if an input is missing. Any number of threads.
  double run(const std::map<std::string, float, std::less<>>& inputs) const;

 private:
  static constexpr std::size_t kMaxAxes = 3;

  enum class Kind : std::uint8_t {
    copy,  // reshapes, and truth values that become numbers
    fill,
    add,
    subtract,
    multiply,
    minimum,
    equal,
    relu,
    absolute,
    concatenate,  // along the last axis of a single row
    split,        // likewise
    product,      // [rows, inner] times [columns, inner] transposed, or [inner, columns]
  };
  struct Tensor {
    std::size_t begin = 0;  // in the run's memory
    std::vector<std::size_t> shape = {};
    std::size_t size = 0;
    bool known = false;  // a constant, an input, or what an operation before gave
  };
  struct Step {
    Kind kind = Kind::copy;
    bool transposed = false;
    std::vector<std::size_t> from = {}, to = {};
  };
  class Loader;

  void perform(const Step& step, float* memory) const;
  void combine(const Step& step, float* memory) const;

  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  std::vector<float> constants_;  // the run's memory before it begins
  std::map<std::string, std::size_t, std::less<>> inputs_;
  std::size_t output_ = 0;
};

}  // namespace tessera::metrics
