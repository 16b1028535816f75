// Memory for the tensors of a training step. Steps ask for the same sizes again and again: a block goes back
// to the pool when its last tensor is gone, and the next of its size takes it.
#pragma once

#include <cstddef>
#include <memory>

#include "core/tensor.h"

namespace tessera {

class BufferPool {
 public:
  BufferPool();

  /// f32 storage of at least this size, aligned to 64 bytes, not cleared. It may outlive the pool.
  Tensor make(const Shape& shape);
  /// Bytes that the pool has taken from the system and not given back.
  std::size_t bytes() const;

 private:
  struct Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace tessera
