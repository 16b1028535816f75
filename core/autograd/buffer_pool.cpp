#include "core/autograd/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/aligned_memory.h"

namespace tessera {
namespace {

// Sizes are rounded up to a sixteenth of their power of two, so that lengths that vary a little share blocks.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(std::max<std::size_t>(bytes, 1)) / 16, 64);
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct BufferPool::Blocks {
  std::mutex mutex;  // tensors may be let go on any thread
  std::unordered_map<std::size_t, std::vector<std::shared_ptr<void>>> free;
  std::size_t bytes = 0;
};

BufferPool::BufferPool() : blocks_(std::make_shared<Blocks>()) {}

Tensor BufferPool::make(const Shape& shape) {
  const std::size_t bytes = rounded(static_cast<std::size_t>(shape.size()) * sizeof(float));
  std::shared_ptr<void> block;
  {
    const std::lock_guard lock(blocks_->mutex);
    std::vector<std::shared_ptr<void>>& free = blocks_->free[bytes];
    if (!free.empty()) {
      block = std::move(free.back());
      free.pop_back();
    } else {
      blocks_->bytes += bytes;
    }
  }
  if (!block) block = allocate_aligned(bytes);
  void* data = block.get();
  // The pool may be gone when the last tensor of the block is: then the block goes back to the system.
  std::shared_ptr<void> lent(data,
                             [bytes, block = std::move(block), pool = std::weak_ptr(blocks_)](void*) mutable {
                               if (const std::shared_ptr<Blocks> blocks = pool.lock()) {
                                 const std::lock_guard lock(blocks->mutex);
                                 blocks->free[bytes].push_back(std::move(block));
                               }
                             });
  return Tensor::view(data, shape, DType::f32, std::move(lent));
}

std::size_t BufferPool::bytes() const {
  const std::lock_guard lock(blocks_->mutex);
  return blocks_->bytes;
}

}  // namespace tessera
