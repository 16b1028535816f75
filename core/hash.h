// A 64-bit content hash of weights and models: XXH3 with seed 0, the same on every machine. It tells files
// apart and finds accidents; it does not resist forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tessera {

/// XXH3_64bits of the bytes.
std::uint64_t content_hash(std::span<const std::byte> bytes);

/// 16 lower-case hexadecimal digits, most significant first.
std::string hex(std::uint64_t hash);

}  // namespace tessera
