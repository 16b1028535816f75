// Memory for weights: aligned to cache lines and, where it is large, in huge pages as far as the system has
// them. A streaming step reads all weights of a model once, so address translation is a good part of its time
// otherwise.
#pragma once

#include <cstddef>
#include <memory>

namespace tessera {

/// At least `bytes` bytes, aligned to 64, not cleared. Throws std::bad_alloc.
std::shared_ptr<void> allocate_aligned(std::size_t bytes);

}  // namespace tessera
