#include "core/workspace.h"

#include <functional>
#include <string>

#include "core/aligned_memory.h"
#include "core/error.h"

namespace tessera {

Workspace::Workspace(std::size_t bytes)
    : memory_(allocate_aligned(padded(bytes + 64))), bytes_(padded(bytes + 64)) {}

void* Workspace::allocate(Side side, std::size_t bytes) {
  bytes = padded(bytes);
  if (low_ + high_ + bytes > bytes_) {
    fail("workspace", std::to_string(low_ + high_ + bytes) + " bytes", std::to_string(bytes_));
  }
  if (side == Side::low) {
    low_ += bytes;
    return at(low_ - bytes);
  }
  high_ += bytes;
  return at(bytes_ - high_);
}

Workspace::Side Workspace::side_of(const void* data) const {
  const std::less<const std::byte*> before;
  const std::byte* byte = static_cast<const std::byte*>(data);
  const bool low = !before(byte, at(0)) && before(byte, at(low_));
  return low ? Side::low : Side::high;
}

}  // namespace tessera
