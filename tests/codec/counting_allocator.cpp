// Counts every allocation that this test program makes through operator new.
#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/codec/support.h"

namespace {

thread_local std::int64_t allocations = 0;

void* counted(void* memory) {
  ++allocations;
  if (!memory) throw std::bad_alloc();
  return memory;
}

std::size_t rounded(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return (size + unit - 1) / unit * unit;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(size + (size == 0)));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(
      std::aligned_alloc(static_cast<std::size_t>(alignment), rounded(size + (size == 0), alignment)));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size + (size == 0));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tessera::test {

std::int64_t allocations_so_far() {
  return allocations;
}

}  // namespace tessera::test
