// The one tensor type: shape, dtype, shared storage and a nullable link to the tape. Contiguous, channels
// last: audio is [B, T, C]. A tensor may also be a view of memory that somebody else owns (a workspace, a
// mapped file).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

namespace tessera {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i8, u8, i16, i32, i64, boolean };

/// Bytes of one element.
std::size_t size_of(DType type);
/// "f32", "bf16", ...
const char* name_of(DType type);

/// Up to five extents, outermost first.
class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  /// Number of elements: 1 for rank 0.
  std::int64_t size() const;
  bool operator==(const Shape&) const = default;
  /// "[2, 960, 64]"
  std::string str() const;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// One operation on the tape (core/autograd/tape.h); unknown to the runtime.
struct TapeNode;

class Tensor {
 public:
  Tensor() = default;
  /// New zeroed storage, aligned to 64 bytes.
  static Tensor zeros(const Shape& shape, DType type = DType::f32);
  /// A view of `data`, which must outlive it (or is kept alive by `owner`).
  static Tensor view(void* data, const Shape& shape, DType type = DType::f32,
                     std::shared_ptr<void> owner = nullptr);

  const Shape& shape() const { return shape_; }
  std::int64_t dim(int axis) const { return shape_[axis]; }
  std::int64_t size() const { return shape_.size(); }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(type_); }
  DType dtype() const { return type_; }
  bool defined() const { return data_ != nullptr; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  float* f32() { return static_cast<float*>(data_); }
  const float* f32() const { return static_cast<const float*>(data_); }
  template <class T>
  T* as() {
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  /// The same elements under another shape of equal size, without the link to the tape.
  Tensor reshaped(const Shape& shape) const;
  /// The same elements without the link to the tape.
  Tensor detached() const { return reshaped(shape_); }

  /// Whether a gradient flows to it: it is a parameter, or was computed from one.
  bool recorded() const { return tape_ != nullptr; }
  /// For the tape: its link, and whether nobody else holds the storage.
  const std::shared_ptr<TapeNode>& node() const { return tape_; }
  void set_node(std::shared_ptr<TapeNode> node) { tape_ = std::move(node); }
  bool sole_owner() const { return storage_.use_count() == 1; }

 private:
  Shape shape_;
  DType type_ = DType::f32;
  void* data_ = nullptr;
  std::shared_ptr<void> storage_;   // null for views of foreign memory
  std::shared_ptr<TapeNode> tape_;  // null outside training
};

/// Exact widening of a bfloat16 pattern to float.
inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// Nearest bfloat16, ties to even; NaN stays NaN.
inline std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u
                                        : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
/// Exact widening of an IEEE half-precision pattern to float.
float f16_to_f32(std::uint16_t bits);

}  // namespace tessera
