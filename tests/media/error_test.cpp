// Every kind of bad input file: one line that says what is wrong, the sound before the damage, no crash.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "support.h"

namespace tessera::test {
namespace {

void expect_error(const std::string& path, ErrorCode code, const std::string& part) {
  const auto reader = AudioReader::open(path);
  ASSERT_FALSE(reader) << path;
  const std::string& message = reader.error().message;
  EXPECT_EQ(reader.error().code, code) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(BadInput, FilesThatAreNot) {
  const Scratch scratch;
  expect_error(scratch / "none.wav", ErrorCode::io, "No such file");
  expect_error(scratch.root(), ErrorCode::io, "directory");
  write_bytes(scratch / "empty.wav", "");
  expect_error(scratch / "empty.wav", ErrorCode::format, "empty");
  write_bytes(scratch / "text.wav", "these words are no sound\n");
  expect_error(scratch / "text.wav", ErrorCode::format, "starts with \"these wo\"");
  write_bytes(scratch / "one.wav", "R");
  expect_error(scratch / "one.wav", ErrorCode::format, "not a media file");
  write_bytes(scratch / "playlist.m3u8",
              "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:9,\n/etc/passwd\n#EXT-X-ENDLIST\n");
  expect_error(scratch / "playlist.m3u8", ErrorCode::format, "");
}

TEST(BadInput, CodecsThatNothingDecodes) {
  const Scratch scratch;
  write_sndfile(scratch / "x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000, 1, std::vector<float>(4000, 0.1f));
  std::string bytes = read_bytes(scratch / "x.wav");
  bytes[20] = 0x34;  // the format tag
  bytes[21] = 0x12;
  write_bytes(scratch / "x.wav", bytes);
  expect_error(scratch / "x.wav", ErrorCode::unsupported, "no decoder for its sound");
}

TEST(BadInput, NoPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may read everything";
  const Scratch scratch;
  write_bytes(scratch / "secret.wav", "x");
  ASSERT_EQ(chmod((scratch / "secret.wav").c_str(), 0), 0);
  expect_error(scratch / "secret.wav", ErrorCode::io, "Permission denied");
}

TEST(BadInput, RatesThatCannotWork) {
  const Scratch scratch;
  write_sndfile(scratch / "x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000, 1, std::vector<float>(10));
  for (const int rate : {-1, 5, 2000000}) {
    const auto reader = AudioReader::open(scratch / "x.wav", {.sample_rate_hz = rate});
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::usage);
    EXPECT_NE(reader.error().message.find(std::to_string(rate)), std::string::npos) << reader.error().message;
  }
}

struct Truncation {
  const char* name;
  int format;
};
class Truncated : public testing::TestWithParam<Truncation> {};

TEST_P(Truncated, DeliversWhatIsThereThenSaysSo) {
  const auto [name, format] = GetParam();
  const Scratch scratch;
  const auto x = sine(440, 44100, 100000);
  write_sndfile(scratch / name, format, 44100, 1, x);
  const Sound whole = read_file(scratch / name);
  EXPECT_EQ(whole.error, "");
  std::filesystem::resize_file(scratch / name, std::filesystem::file_size(scratch / name) / 2);
  const Sound half = read_file(scratch / name);
  EXPECT_GT(half.samples.size(), 30000u);
  EXPECT_LT(half.samples.size(), 70000u);
  EXPECT_TRUE(std::equal(half.samples.begin(), half.samples.end(), whole.samples.begin()));
  EXPECT_NE(half.error.find("damaged"), std::string::npos) << half.error;
  EXPECT_NE(half.error.find(std::to_string(half.samples.size()) + " frames were read"), std::string::npos)
      << half.error;
  // Resampled, the sound up to the damage is whole as well.
  const Sound slow = read_file(scratch / name, {.sample_rate_hz = 22050});
  EXPECT_EQ(slow.samples.size(), (half.samples.size() + 1) / 2);
  EXPECT_EQ(slow.error, half.error);
}

INSTANTIATE_TEST_SUITE_P(All, Truncated,
                         testing::Values(Truncation{"t.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                                         Truncation{"t.rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16},
                                         Truncation{"big.wav",
                                                    SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG},
                                         Truncation{"t.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16},
                                         Truncation{"t.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// Sizes that mean "until the end" in files saved from a pipe are no damage.
TEST(BadInput, UnknownSizesAreFine) {
  const Scratch scratch;
  for (const char* size : {"\xff\xff\xff\xff", "\xff\xff\xff\x7f", "\x00\xf0\xff\x7f"}) {
    const std::string length(size, 4);
    std::string wav = "RIFF" + length + "WAVEfmt ";
    const unsigned char rest[] = {16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0};
    wav.append(reinterpret_cast<const char*>(rest), sizeof rest);
    wav += "data" + length + std::string("\0\x40\0\x20\0\xc0", 6);
    write_bytes(scratch / "s.wav", wav);
    const Sound sound = read_file(scratch / "s.wav");
    EXPECT_EQ(sound.samples, (std::vector<float>{0.5f, 0.25f, -0.5f}));
    EXPECT_EQ(sound.error, "");
  }
}

// Any byte of a small file changed or any tail missing: an error or sound, nothing else.
TEST(BadInput, ChangedBytesNeverCrash) {
  const Scratch scratch;
  for (const int format : {SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_AIFF | SF_FORMAT_PCM_24,
                           SF_FORMAT_FLAC | SF_FORMAT_PCM_16, SF_FORMAT_WAVEX | SF_FORMAT_FLOAT}) {
    write_sndfile(scratch / "x", format, 8000, 1, sine(100, 8000, 20));
    const std::string good = read_bytes(scratch / "x");
    for (size_t i = 0; i < std::min<size_t>(good.size(), 120); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (i % 2 == 0 ? 0xff : 0x80));
      write_bytes(scratch / "bad", i % 3 == 2 ? good.substr(0, i) : bad);
      auto reader = AudioReader::open(scratch / "bad");
      if (!reader) {
        EXPECT_FALSE(reader.error().message.empty());
      } else {
        EXPECT_LT(read_all(*reader).samples.size(), 100000u);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
