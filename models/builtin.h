// The weights that the library carries inside itself, so that a program works without any file at hand.
// models/CMakeLists.txt links models/tessera_speech.safetensors in as read-only data;
// models/tessera_speech.md says what it is. A program that never calls builtin_model() does not pay for it:
// the linker leaves it out.
#pragma once

#include <cstddef>
#include <span>

namespace tessera {

/// The whole safetensors file of the built-in speech codec, byte for byte, aligned to 64 bytes. Lives as long
/// as the program; the pages are read from the executable when first touched.
std::span<const std::byte> builtin_model();

}  // namespace tessera
