// Writes grayscale PNG files (W3C PNG 2003): 8 bits per pixel, not interlaced. Leaves out colour and reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace tessera::train {

struct GrayImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels = {};  ///< [height, width], the top row first; 0 is black
};

/// The bytes of a PNG file. Throws UsageError for an image without pixels or with too few or too many.
std::vector<std::byte> encode_png(const GrayImage& image);
/// Writes it; the file appears whole or not at all. Error io.
Result<void> write_png(const std::string& path, const GrayImage& image);

}  // namespace tessera::train
