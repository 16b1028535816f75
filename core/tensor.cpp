#include "core/tensor.h"

#include <cstring>

#include "core/aligned_memory.h"
#include "core/error.h"

namespace tessera {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 1;
}

const char* name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f64:
      return "f64";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > kMaxRank) fail("shape", "at most 5 axes", std::to_string(extents.size()));
  for (const std::int64_t extent : extents) {
    if (extent < 0) fail("shape", "extents >= 0", std::to_string(extent));
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
}

std::int64_t Shape::size() const {
  std::int64_t size = 1;
  for (int axis = 0; axis < rank_; ++axis) size *= (*this)[axis];
  return size;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis) text += ", ";
    text += std::to_string((*this)[axis]);
  }
  return text + "]";
}

Tensor Tensor::zeros(const Shape& shape, DType type) {
  const std::size_t bytes = static_cast<std::size_t>(shape.size()) * size_of(type);
  std::shared_ptr<void> storage = allocate_aligned(bytes);
  void* data = storage.get();
  std::memset(data, 0, bytes);
  return view(data, shape, type, std::move(storage));
}

Tensor Tensor::view(void* data, const Shape& shape, DType type, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.type_ = type;
  tensor.data_ = data;
  tensor.storage_ = std::move(owner);
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.size() != size()) fail("reshape", std::to_string(size()) + " elements", shape.str());
  return view(data_, shape, type_, storage_);
}

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide =
      sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (mantissa << 13);
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

}  // namespace tessera
