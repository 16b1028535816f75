// XXH3 comes inlined from xxhash's header, so that a cross build needs no library for the target.
#include "core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

std::uint64_t content_hash(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hex(std::uint64_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = kDigits[hash & 15];
  return text;
}

}  // namespace tessera
