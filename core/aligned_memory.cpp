#include "core/aligned_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace tessera {

std::shared_ptr<void> allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;
  const bool large = bytes >= kHugePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, large ? kHugePage : kLine, bytes + (bytes == 0)) != 0) throw std::bad_alloc();
  // A wish: where it is refused, all works as before. The end of a large block stays in ordinary pages.
  if (large) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return {memory, std::free};
}

}  // namespace tessera
