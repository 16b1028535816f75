#include "core/workspace.h"

#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "core/error.h"

namespace tessera {

Workspace::Workspace(std::size_t bytes)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(64, padded(bytes + 64))),
              [](std::byte* memory) { std::free(memory); }),
      bytes_(padded(bytes + 64)) {
  if (!memory_) throw std::bad_alloc();
}

void* Workspace::allocate(Side side, std::size_t bytes) {
  bytes = padded(bytes);
  if (low_ + high_ + bytes > bytes_) {
    fail("workspace", std::to_string(low_ + high_ + bytes) + " bytes", std::to_string(bytes_));
  }
  if (side == Side::low) {
    low_ += bytes;
    return memory_.get() + (low_ - bytes);
  }
  high_ += bytes;
  return memory_.get() + (bytes_ - high_);
}

Workspace::Side Workspace::side_of(const void* data) const {
  const std::byte* at = static_cast<const std::byte*>(data);
  const std::less<const std::byte*> before;
  const bool low = !before(at, memory_.get()) && before(at, memory_.get() + low_);
  return low ? Side::low : Side::high;
}

}  // namespace tessera
