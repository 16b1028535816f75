// The weights that the library carries inside itself, so that a program works without any file at hand.
// models/CMakeLists.txt links models/tessera_speech.safetensors and models/phone_classifier.safetensors in as
// read-only data; the .md files beside them say what they are. A program that never calls one of the
// functions does not pay for its weights: the linker leaves them out.
#pragma once

#include <cstddef>
#include <span>

namespace tessera {

/// The whole safetensors file of the built-in speech codec, byte for byte, aligned to 64 bytes. Lives as long
/// as the program; the pages are read from the executable when first touched.
std::span<const std::byte> builtin_model();
/// Likewise the phone classifier of the metric phone_error.
std::span<const std::byte> builtin_phone_classifier();

}  // namespace tessera
