// That the bytes of the format do not change: by a golden file, and by a second reader in another language
// that was written from docs/bitstream.md alone. And the checksum against published values.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codec/crc32c.h"
#include "tests/codec/tsr_helpers.h"

namespace tessera {
namespace {

using namespace tsr_test;

TEST(Crc32c, PublishedValues) {
  const std::string digits = "123456789";
  const auto bytes = std::as_bytes(std::span(digits));
  EXPECT_EQ(crc32c(bytes), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes.subspan(4), crc32c(bytes.first(4))), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0})), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0xff})), 0x62a8ab43u);
}

TEST(Crc32c, LocatesAnyDamagedByte) {
  Bytes message(264);
  std::mt19937 random(1);
  for (auto& byte : message) byte = static_cast<std::byte>(random());
  const std::uint32_t sum = crc32c(message);
  for (std::size_t position = 0; position < message.size(); ++position) {
    for (unsigned difference = 1; difference < 256; ++difference) {
      message[position] ^= static_cast<std::byte>(difference);
      const auto repair = locate_damaged_byte(crc32c(message) ^ sum, message.size());
      message[position] ^= static_cast<std::byte>(difference);
      ASSERT_TRUE(repair && repair->position == position &&
                  repair->difference == static_cast<std::byte>(difference));
    }
  }
  EXPECT_FALSE(locate_damaged_byte(0x12345678, message.size()));
}

TEST(Tsr, BytesStayTheSame) {
  TsrHeader header = mimi_header();
  header.codebook_sizes = {2048, 2048, 5};
  header.pre_skip = 300;
  header.channels = 2;
  header.frames_per_segment = 4;
  header.metadata = {{"source_name", "a.wav"}};
  Frames frames;
  for (int f = 0; f < 7; ++f) {
    if (f < 4)
      frames.push_back({f * 300, 2047 - f, f, 1000 + f * f, f * 7, 4 - f});  // packed
    else
      frames.push_back({77, 5, 3, 77, 1024, 3});  // coded
  }
  const Bytes file = write_file(header, frames, {}, 44);
  std::string hex;
  for (const std::byte byte : file) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    hex += digits;
  }
  EXPECT_EQ(hex,
            "545352011c41efcdab8967452301c0bb01800fac020402046d696d69ff0f020401aebefb2a"  // header
            "d0120b736f757263655f6e616d6505612e7761763cff63be"                            // metadata
            "a000006009960887bef4b12f7efff77ffff90f800338a00288c629fc58fe8f"  // four frames, packed
            "a3040302040109a000a700029a77cce973"                              // three frames, coded
            "e0072cbf27f1da");                                                // trailer
}

class SecondReader : public testing::TestWithParam<EntropyCoder> {};

TEST_P(SecondReader, AgreesFromTheSpecificationAlone) {
  if (std::system("python3 -c 'import json' >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs python3";
  TsrHeader header = mimi_header();
  header.codebook_sizes = {2048, 1000, 5, 2};
  header.channels = 2;
  header.pre_skip = 77;
  header.entropy_coder = GetParam();
  header.metadata = {{"source_name", "x"}};
  header.frames_per_segment = 9;
  Frames frames = random_frames(header, 300, 12);
  const Frames repeats = random_frames(header, 120, 13, true);
  frames.insert(frames.end(), repeats.begin(), repeats.end());
  Bytes file = write_file(header, frames, {.header_every_seconds = 5}, 1234);
  header.frames_per_segment = 700;  // long enough for the flag's counts to be halved
  const Frames constant(700, std::vector<std::int32_t>(8, 1));
  write_stream(file, header, constant);

  std::string expected;
  const auto add_stream = [&](const Frames& stream, std::uint64_t samples) {
    expected += "[\"mimi\", 81985529216486895, 24000, 1920, 77, 2, [2048, 1000, 5, 2]]\n";
    for (const auto& f : stream) {
      const auto list = [&](std::size_t at) {
        return "[" + std::to_string(f[at]) + ", " + std::to_string(f[at + 1]) + ", " +
               std::to_string(f[at + 2]) + ", " + std::to_string(f[at + 3]) + "]";
      };
      expected += "[" + list(0) + ", " + list(4) + "]\n";
    }
    expected += std::to_string(samples) + "\n";
  };
  add_stream(frames, 420 * 1920 - 77 - 1234);
  add_stream(constant, 700 * 1920 - 77);

  const std::string path =
      testing::TempDir() + "second_reader_" + std::to_string(static_cast<int>(GetParam())) + ".tsr";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  std::FILE* pipe =
      popen(("python3 " TESSERA_SOURCE_DIR "/tests/codec/read_tsr.py '" + path + "' 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0) << output.substr(0, 2000);
  EXPECT_TRUE(output == expected) << output.substr(0, 500);
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(BothCoders, SecondReader,
                         testing::Values(EntropyCoder::packed, EntropyCoder::adaptive));

}  // namespace
}  // namespace tessera
