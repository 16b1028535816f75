// Scratch memory of one step: two stacks that grow towards each other, so that a layer reads its input from
// one side and leaves its output on the other, and a chain of layers needs only the two largest neighbours at
// a time. Sized once when a stream opens (Layer::workspace_bytes); a step allocates nothing from the heap.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/tensor.h"

namespace tessera {

class Workspace {
 public:
  enum class Side { low, high };
  /// Where a stack stood; release() goes back to it.
  struct Mark {
    std::size_t low = 0, high = 0;
  };

  explicit Workspace(std::size_t bytes);

  /// Memory aligned to 64 bytes, not cleared. Throws UsageError when the workspace was sized too small.
  void* allocate(Side side, std::size_t bytes);
  template <class T>
  std::span<T> array(Side side, std::size_t count) {
    return {static_cast<T*>(allocate(side, count * sizeof(T))), count};
  }
  Tensor tensor(Side side, const Shape& shape) {
    return Tensor::view(allocate(side, static_cast<std::size_t>(shape.size()) * sizeof(float)), shape);
  }

  Mark mark() const { return {low_, high_}; }
  /// Frees what was allocated on `side` since `mark`.
  void release(Side side, const Mark& mark) {
    (side == Side::low ? low_ : high_) = side == Side::low ? mark.low : mark.high;
  }
  /// Frees everything, also what an exception left behind.
  void clear() { low_ = high_ = 0; }
  /// The side on which `data` lies; memory from elsewhere counts as high.
  Side side_of(const void* data) const;
  static Side other(Side side) { return side == Side::low ? Side::high : Side::low; }
  std::size_t bytes() const { return bytes_; }

  /// What `bytes` bytes take with alignment, at least one unit so that even nothing has a side: for
  /// workspace_bytes().
  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + (bytes == 0) + 63) / 64 * 64; }

 private:
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(memory_.get()) + offset; }

  std::shared_ptr<void> memory_;
  std::size_t bytes_;
  std::size_t low_ = 0;   // bytes used from the start
  std::size_t high_ = 0;  // bytes used from the end
};

}  // namespace tessera
