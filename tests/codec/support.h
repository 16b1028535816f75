// What the codec tests share: pushing whole clips through streams in pieces, and reading reference files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "core/npy.h"
#include "tests/random.h"

namespace tessera::test {

/// Path below the folder of reference files; skips the test when that folder is absent.
#define TESSERA_NEED_SHARED()                                                            \
  if (!std::filesystem::exists(std::string(TESSERA_SHARED_DIR) + "/fixtures/README.md")) \
  GTEST_SKIP() << "no reference fixtures at " << TESSERA_SHARED_DIR

inline std::string shared(const std::string& path) {
  return std::string(TESSERA_SHARED_DIR) + "/" + path;
}

/// Sizes of the pieces in which a clip is pushed, repeated until it is used up; 0 pushes nothing.
using Pieces = std::vector<std::size_t>;

/// All tokens of a clip, [frames, codebooks].
std::vector<std::int32_t> encode(Encoder& encoder, std::span<const float> pcm,
                                 const Pieces& pieces = {1u << 30});
/// All samples of [frames, codebooks] tokens, pushed in pieces of so many frames.
std::vector<float> decode(Decoder& decoder, std::span<const std::int32_t> tokens,
                          const Pieces& pieces = {1u << 30});

/// Heap allocations of this thread since it started (tests/codec/counting_allocator.cpp).
std::int64_t allocations_so_far();

/// A .npy file; throws when it cannot be read.
Tensor reference(const std::string& path);
/// [rows, columns] floats or tokens of a .npy file as [columns, rows] (theirs are channels first), the first
/// `rows` rows.
std::vector<float> reference_latents(const std::string& path);
std::vector<std::int32_t> reference_tokens(const std::string& path, int rows = 0);
/// The encoder's latents [frames, dimension] of a whole clip, padded with zeros to whole frames unless the
/// layers pad.
std::vector<float> latents(const Codec& codec, std::span<const float> pcm);
/// Largest |a - b|; infinite for different sizes.
double max_difference(std::span<const float> a, std::span<const float> b);

}  // namespace tessera::test
