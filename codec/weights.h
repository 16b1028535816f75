// Reads the weights of a model under their canonical names. Unlike the rest of the library, code that builds
// a model throws ResultError for a file that does not fit: Codec::load() turns it into its result, and a
// family reads without ifs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/gemm.h"
#include "core/safetensors.h"

namespace tessera {

struct Weight {
  std::vector<float> values;
  bool bf16 = false;  ///< stored as bfloat16: packing it as such loses nothing
};

class Weights {
 public:
  Weights(const SafeTensors& file, WeightType type) : file_(file), type_(type) {}

  /// Layers ask for canonical names; `rename` turns them into the file's.
  void set_rename(std::function<std::string(const std::string&)> rename) { rename_ = std::move(rename); }

  /// The tensor as floats. Throws ResultError (mismatch) unless it is there with exactly this shape.
  Weight get(const std::string& name, const Shape& shape);
  /// Shape of a tensor, if there is one.
  std::optional<Shape> shape(const std::string& name) const;
  bool has(const std::string& name) const { return shape(name).has_value(); }
  /// One extent of a tensor. Throws ResultError (mismatch) if there is no such tensor or axis.
  int extent(const std::string& name, int axis) const;
  /// `name`.weight, or g * v / |v| from `name`.weight_g and .weight_v (or parametrizations.weight.original0
  /// and 1), the norm over all axes but the first.
  Weight get_normalized(const std::string& name, const Shape& shape);

  /// How to pack `weight`: large ones, which a streaming step waits for, as the options say; small ones in
  /// f32. Weights stored as bf16 stay so, which is exact.
  WeightType pack_type(const Weight& weight) const;
  /// A weight [out, in], packed for y = x W^T.
  PackedMatrix matrix(const Weight& weight, int in, int out) const;

 private:
  std::string file_name(const std::string& name) const { return rename_ ? rename_(name) : name; }

  const SafeTensors& file_;
  WeightType type_;
  std::function<std::string(const std::string&)> rename_;
};

/// Hash of all floating-point tensors, the same however the layout of a file names, joins or orders their
/// rows: the sum of the hashes of all rows (slices of the first axis; a vector is one row).
std::uint64_t weights_hash(const SafeTensors& file);
/// Number of floating-point values in the file.
std::int64_t count_parameters(const SafeTensors& file);

}  // namespace tessera
