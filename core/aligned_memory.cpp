#include "core/aligned_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace tessera {

std::shared_ptr<void> allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;
  const bool large = bytes >= kHugePage;
  const std::size_t alignment = large ? kHugePage : kLine;
  // The size is a multiple of the line only: the last part of a large block stays in ordinary pages.
  void* memory = std::aligned_alloc(alignment, (bytes + kLine) / kLine * kLine);
  if (!memory) throw std::bad_alloc();
  if (large)
    madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // a wish: refused, all works as before
  return {memory, std::free};
}

}  // namespace tessera
