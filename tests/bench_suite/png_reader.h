// Reads the PNG files that a browser writes: 8 bits, RGB or RGBA, not interlaced, all five row filters.
#pragma once

#include <zlib.h>

#include <algorithm>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace tessera::test {

struct RgbImage {
  std::size_t width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> bytes = {};  ///< [height, width, channels]
};

inline std::size_t png_u32(const std::string& bytes, std::size_t at) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes.at(at + i));
  return value;
}

inline int paeth(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int a = std::abs(estimate - left), b = std::abs(estimate - above), c = std::abs(estimate - corner);
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/// An image without bytes for what is no such file.
inline RgbImage read_png(const std::string& file) {
  RgbImage image;
  if (file.substr(0, 8) != "\x89PNG\r\n\x1a\n" || file.size() < 33) return image;
  image.width = png_u32(file, 16);
  image.height = png_u32(file, 20);
  if (file[24] != 8 || (file[25] != 2 && file[25] != 6) || file[28] != 0) return image;
  image.channels = file[25] == 2 ? 3 : 4;
  std::string data;
  for (std::size_t at = 8; at + 12 <= file.size(); at += png_u32(file, at) + 12) {
    if (file.substr(at + 4, 4) == "IDAT") data += file.substr(at + 8, png_u32(file, at));
  }
  const std::size_t stride = image.width * image.channels;
  std::vector<std::uint8_t> rows((stride + 1) * image.height);
  uLongf size = rows.size();
  if (uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(data.data()), data.size()) != Z_OK ||
      size != rows.size()) {
    return image;
  }
  image.bytes.resize(stride * image.height);
  for (std::size_t y = 0; y < image.height; ++y) {
    const std::uint8_t filter = rows[y * (stride + 1)];
    for (std::size_t x = 0; x < stride; ++x) {
      const std::size_t at = y * stride + x, step = image.channels;
      const int left = x >= step ? image.bytes[at - step] : 0, above = y > 0 ? image.bytes[at - stride] : 0;
      const int corner = x >= step && y > 0 ? image.bytes[at - stride - step] : 0;
      const int guesses[] = {0, left, above, (left + above) / 2, paeth(left, above, corner)};
      image.bytes[at] =
          static_cast<std::uint8_t>(rows[y * (stride + 1) + 1 + x] + guesses[filter < 5 ? filter : 0]);
    }
  }
  return image;
}

/// The part of the pixels whose darkest channel is below `level`.
inline double darker_part(const RgbImage& image, int level) {
  std::size_t dark = 0;
  for (std::size_t i = 0; i < image.width * image.height; ++i) {
    int darkest = 255;
    for (std::size_t c = 0; c < 3; ++c) {
      darkest = std::min(darkest, int{image.bytes.at(i * image.channels + c)});
    }
    dark += darkest < level ? 1 : 0;
  }
  return static_cast<double>(dark) / static_cast<double>(image.width * image.height);
}

}  // namespace tessera::test
