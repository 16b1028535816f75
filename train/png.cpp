// Rows are filtered by "up" (the difference from the row above), which suits spectrograms, and deflated by
// zlib.
#include "train/png.h"

#include <zlib.h>

#include <span>
#include <string_view>

#include "core/atomic_file.h"
#include "core/error.h"

namespace tessera::train {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kFilterUp = 2;

void put_u32(Bytes& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

/// Length, name, data, and a CRC over name and data.
void put_chunk(Bytes& out, std::string_view name, const Bytes& data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = out.size();
  out.insert(out.end(), name.begin(), name.end());
  out.insert(out.end(), data.begin(), data.end());
  put_u32(out,
          static_cast<std::uint32_t>(crc32(0, out.data() + begin, static_cast<uInt>(out.size() - begin))));
}

Bytes filtered(const GrayImage& image) {
  const std::size_t width = static_cast<std::size_t>(image.width);
  Bytes rows;
  rows.reserve((width + 1) * static_cast<std::size_t>(image.height));
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    if (i % width == 0) rows.push_back(kFilterUp);
    rows.push_back(static_cast<std::uint8_t>(image.pixels[i] - (i < width ? 0 : image.pixels[i - width])));
  }
  return rows;
}

Bytes deflated(const Bytes& data) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  Bytes out(size);
  if (compress2(out.data(), &size, data.data(), static_cast<uLong>(data.size()), Z_BEST_COMPRESSION) !=
      Z_OK) {
    throw std::bad_alloc();  // the only other reason, a short buffer, compressBound rules out
  }
  out.resize(size);
  return out;
}

}  // namespace

std::vector<std::byte> encode_png(const GrayImage& image) {
  constexpr int kMost = 1 << 15;
  if (image.width < 1 || image.height < 1 || image.width > kMost || image.height > kMost ||
      image.pixels.size() != static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height)) {
    fail("encode_png", "width times height pixels, at most 32768 each",
         std::to_string(image.width) + " x " + std::to_string(image.height) + " and " +
             std::to_string(image.pixels.size()) + " pixels");
  }
  Bytes header;
  put_u32(header, static_cast<std::uint32_t>(image.width));
  put_u32(header, static_cast<std::uint32_t>(image.height));
  header.insert(header.end(), {8, 0, 0, 0, 0});  // bits, grayscale, deflate, filters by row, not interlaced
  Bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", deflated(filtered(image)));
  put_chunk(out, "IEND", {});
  const auto bytes = std::as_bytes(std::span(out));
  return {bytes.begin(), bytes.end()};
}

Result<void> write_png(const std::string& path, const GrayImage& image) {
  const auto bytes = encode_png(image);
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

}  // namespace tessera::train
