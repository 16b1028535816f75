#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "tests/random.h"
#include "tests/train/run_support.h"
#include "train/png.h"
#include "train/spectrogram_image.h"

namespace tessera::train {
namespace {

std::uint32_t u32_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

// A reader of what encode_png writes: checks every chunk's CRC, inflates, undoes the filters none and up.
GrayImage decode(const std::string& bytes) {
  GrayImage image;
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  std::string names, data;
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::size_t size = u32_at(bytes, at);
    const std::string name = bytes.substr(at + 4, 4), content = bytes.substr(at + 8, size);
    const auto* covered = reinterpret_cast<const Bytef*>(bytes.data()) + at + 4;
    EXPECT_EQ(u32_at(bytes, at + 8 + size), crc32(0, covered, static_cast<uInt>(size + 4))) << name;
    names += name + " ";
    if (name == "IDAT") data += content;
    if (name == "IHDR") {
      image.width = static_cast<int>(u32_at(content, 0));
      image.height = static_cast<int>(u32_at(content, 4));
      EXPECT_EQ(content.substr(8), std::string("\x08\0\0\0\0", 5));
    }
    at += size + 12;
  }
  EXPECT_EQ(names, "IHDR IDAT IEND ");
  const std::size_t width = static_cast<std::size_t>(image.width),
                    height = static_cast<std::size_t>(image.height);
  std::vector<std::uint8_t> rows((width + 1) * height);
  uLongf size = rows.size();
  EXPECT_EQ(uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(data.data()), data.size()), Z_OK);
  EXPECT_EQ(size, rows.size());
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t filter = rows[y * (width + 1)];
    EXPECT_TRUE(filter == 0 || filter == 2);
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint8_t above = filter == 2 && y > 0 ? image.pixels[(y - 1) * width + x] : 0;
      image.pixels.push_back(static_cast<std::uint8_t>(rows[y * (width + 1) + 1 + x] + above));
    }
  }
  return image;
}

TEST(Png, DecodesToTheSamePixels) {
  const test::RunFolder folder("png");
  for (const auto& [width, height] : {std::pair(1, 1), std::pair(7, 3), std::pair(64, 50)}) {
    GrayImage image;
    image.width = width;
    image.height = height;
    for (const float v : test::random_floats(static_cast<std::size_t>(width * height), 3, 100.0f)) {
      image.pixels.push_back(static_cast<std::uint8_t>(v + 128));
    }
    ASSERT_TRUE(write_png(folder / "x.png", image));
    const GrayImage decoded = decode(test::text_of(folder / "x.png"));
    EXPECT_EQ(decoded.width, width);
    EXPECT_EQ(decoded.height, height);
    EXPECT_EQ(decoded.pixels, image.pixels);
  }
}

TEST(Png, RefusesWhatIsNoImage) {
  GrayImage image;
  EXPECT_THROW(encode_png(image), UsageError);
  image.width = image.height = 2;
  image.pixels.resize(3);
  EXPECT_THROW(encode_png(image), UsageError);
  image.pixels.resize(4);
  EXPECT_EQ(write_png("/nowhere/x.png", image).error().code, ErrorCode::io);
}

std::vector<float> tone(std::size_t samples, double turns_per_sample, float amplitude = 0.5f) {
  std::vector<float> pcm(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    pcm[i] = amplitude * static_cast<float>(std::sin(2 * M_PI * turns_per_sample * static_cast<double>(i)));
  }
  return pcm;
}

TEST(SpectrogramImage, AToneIsABlackLineAtItsHeight) {
  ThreadPool pool(2);
  const GrayImage image = spectrogram_image(tone(4000, 32.0 / 512), pool);
  EXPECT_EQ(image.height, 256);
  EXPECT_EQ(image.width, 1 + 4000 / 128);
  const auto pixel = [&](int row, int column) {
    return int{image.pixels[static_cast<std::size_t>(row * image.width + column)]};
  };
  const int middle = image.width / 2;
  EXPECT_LT(pixel(255 - 32, middle), 3);
  EXPECT_GT(pixel(255 - 100, middle), 200);
  EXPECT_GT(pixel(0, middle), 200);
}

TEST(SpectrogramImage, ThePairSharesItsScale) {
  ThreadPool pool;
  const auto loud = tone(3000, 0.1), quiet = tone(2000, 0.1, 0.5e-2f);  // 40 dB below
  const GrayImage pair = spectrogram_pair(loud, quiet, pool);
  EXPECT_EQ(pair.height, 256 + 6 + 256);
  const std::size_t width = static_cast<std::size_t>(pair.width), half = 256 * width;
  const auto darkest_in = [&](std::size_t begin, std::size_t end) {
    return int{*std::min_element(pair.pixels.begin() + static_cast<std::ptrdiff_t>(begin),
                                 pair.pixels.begin() + static_cast<std::ptrdiff_t>(end))};
  };
  EXPECT_EQ(darkest_in(0, half), 0);
  EXPECT_NEAR(darkest_in(half, pair.pixels.size()), 128, 3);  // half of the 80 dB
  EXPECT_EQ(pair.pixels.back(), 255);                         // beyond the end of the shorter one
}

TEST(SpectrogramImage, TakesAnyLengthAndBrokenSound) {
  ThreadPool pool;
  for (const std::size_t samples : {0u, 1u, 100u, 300000u}) {
    const GrayImage image = spectrogram_image(std::vector<float>(samples), pool);
    EXPECT_LE(image.width, 1600);
    EXPECT_EQ(*std::min_element(image.pixels.begin(), image.pixels.end()), 255)
        << samples;  // silence is white
  }
  std::vector<float> broken = tone(2000, 0.1);
  broken[1000] = NAN;
  broken[500] = INFINITY;
  EXPECT_EQ(spectrogram_image(broken, pool).height, 256);
  SpectrogramOptions odd;
  odd.window = 255;
  EXPECT_THROW(spectrogram_image(broken, pool, odd), UsageError);
}

}  // namespace
}  // namespace tessera::train
