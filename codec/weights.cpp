#include "codec/weights.h"

#include <cmath>
#include <span>

#include "core/hash.h"

namespace tessera {
namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

constexpr std::int64_t kMaxExtent = 1 << 20;

bool is_floating(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16 || type == DType::f64;
}

}  // namespace

std::optional<Shape> Weights::shape(const std::string& name) const {
  const auto view = file_.find(file_name(name));
  if (!view) return std::nullopt;
  return view->shape;
}

int Weights::extent(const std::string& name, int axis) const {
  const auto found = shape(name);
  if (!found || axis >= found->rank() || (*found)[axis] < 1 || (*found)[axis] > kMaxExtent) {
    throw ResultError({ErrorCode::mismatch, file_.name() + ": expected a tensor " + file_name(name) +
                                                " with at least " + std::to_string(axis + 1) + " axes, got " +
                                                (found ? found->str() : "none of that name")});
  }
  return static_cast<int>((*found)[axis]);
}

Weight Weights::get(const std::string& name, const Shape& shape) {
  const std::string stored = file_name(name);
  return {file_.read_f32(stored, shape).value(), file_.find(stored)->dtype == DType::bf16};
}

Weight Weights::get_normalized(const std::string& name, const Shape& shape) {
  if (has(name + ".weight")) return get(name + ".weight", shape);
  const bool parametrized = has(name + ".parametrizations.weight.original0");
  const std::string g_name = name + (parametrized ? ".parametrizations.weight.original0" : ".weight_g");
  const std::string v_name = name + (parametrized ? ".parametrizations.weight.original1" : ".weight_v");
  const Weight g = get(g_name, {shape[0], 1, 1});
  Weight v = get(v_name, shape);
  const std::size_t row = to_size(shape.size() / shape[0]);
  for (std::size_t i = 0; i < to_size(shape[0]); ++i) {
    const std::span<float> values(v.values.data() + i * row, row);
    double square = 0;
    for (const float value : values) square += static_cast<double>(value) * value;
    const double scale = g.values[i] / std::sqrt(square);
    for (float& value : values) value = static_cast<float>(value * scale);
  }
  v.bf16 = false;
  return v;
}

WeightType Weights::pack_type(const Weight& weight) const {
  constexpr std::size_t kLarge = 1 << 16;
  if (type_ == WeightType::i8 && weight.values.size() >= kLarge) return WeightType::i8;
  if (weight.bf16 || (type_ == WeightType::bf16 && weight.values.size() >= kLarge)) return WeightType::bf16;
  return WeightType::f32;
}

PackedMatrix Weights::matrix(const Weight& weight, int in, int out) const {
  return PackedMatrix::pack(weight.values.data(), in, out, 1, in, pack_type(weight));
}

std::uint64_t weights_hash(const SafeTensors& file) {
  std::uint64_t sum = 0;
  for (const std::string& name : file.names()) {
    const TensorView view = *file.find(name);
    if (!is_floating(view.dtype) || view.bytes.empty()) continue;
    const std::size_t rows = view.shape.rank() > 1 ? to_size(view.shape[0]) : 1;
    const std::size_t bytes = view.bytes.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) sum += content_hash(view.bytes.subspan(row * bytes, bytes));
  }
  return sum;
}

std::int64_t count_parameters(const SafeTensors& file) {
  std::int64_t count = 0;
  for (const std::string& name : file.names()) {
    const TensorView view = *file.find(name);
    if (is_floating(view.dtype)) count += view.shape.size();
  }
  return count;
}

}  // namespace tessera
