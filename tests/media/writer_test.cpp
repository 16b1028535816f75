// What AudioWriter stores, read back by libsndfile and as bytes: rounding, limits, sizes, RF64, nothing left
// behind.
#include "codec/media/wav_header.h"
#include "core/error.h"
#include "support.h"

namespace tessera::test {
namespace {

Result<void> write_file(const std::string& path, const WriteOptions& options,
                        const std::vector<float>& samples) {
  auto writer = AudioWriter::create(path, options);
  if (!writer) return writer.error();
  if (auto r = writer->write(samples); !r) return r;
  return writer->finish();
}

uint32_t u32(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

TEST(AudioWriter, ReadsBackAsWritten) {
  const Scratch scratch;
  std::vector<float> x;
  for (int i = -32768; i < 32768; i += 3) x.push_back(static_cast<float>(i) / 32768);
  while (x.size() % 6 != 0) x.push_back(0.5f);
  for (const char* name : {"x.wav", "x.flac", "X.WAVE"}) {
    for (const int channels : {1, 2, 3, 6}) {
      for (const SampleFormat format : {SampleFormat::pcm16, SampleFormat::pcm24, SampleFormat::float32}) {
        if (format == SampleFormat::float32 && name[2] == 'f') continue;
        const WriteOptions options{.sample_rate_hz = 24000, .channels = channels, .format = format};
        const auto r = write_file(scratch / name, options, x);
        ASSERT_TRUE(r) << r.error().message;
        const Sound sound = read_file(scratch / name);
        EXPECT_EQ(sound.samples, x) << name << channels;
        EXPECT_EQ(sound.channels, channels);
        EXPECT_EQ(sound.rate, 24000);
      }
    }
  }
}

TEST(AudioWriter, SplitsDoNotChangeTheFile) {
  const Scratch scratch;
  const auto x = sine(440, 24000, 40000);
  for (const std::string ext : {".wav", ".flac"}) {
    const WriteOptions options{.sample_rate_hz = 24000, .channels = 2};
    ASSERT_TRUE(write_file(scratch / ("whole" + ext), options, x));
    auto writer = AudioWriter::create(scratch / ("parts" + ext), options);
    ASSERT_TRUE(writer);
    for (size_t at = 0; at < x.size(); at += 334) {
      ASSERT_TRUE(writer->write(std::span(x).subspan(at, std::min<size_t>(334, x.size() - at))));
    }
    EXPECT_EQ(writer->frames(), 20000);
    ASSERT_TRUE(writer->finish());
    EXPECT_EQ(read_bytes(scratch / ("whole" + ext)), read_bytes(scratch / ("parts" + ext)));
  }
}

TEST(AudioWriter, RoundsToNearestEvenAndCountsWhatDoesNotFit) {
  const Scratch scratch;
  const float lsb = 1.0f / 32768;
  const std::vector<float> x = {0.5f * lsb, 1.5f * lsb, -0.5f * lsb, -2.5f * lsb,   0.6f * lsb,    1.0f,
                                -1.0f,      -1.5f,      3.0f,        std::nanf(""), 32767.4f * lsb};
  auto writer = AudioWriter::create(scratch / "r.wav", {.sample_rate_hz = 8000, .channels = 1});
  ASSERT_TRUE(writer && writer->write(x));
  EXPECT_EQ(writer->clipped(), 4);  // 1, -1.5, 3 and the one that is no number
  ASSERT_TRUE(writer->finish());
  std::vector<float> expected;
  for (const int v : {0, 2, 0, -2, 1, 32767, -32768, -32768, 32767, 0, 32767}) {
    expected.push_back(static_cast<float>(v) * lsb);
  }
  EXPECT_EQ(read_file(scratch / "r.wav").samples, expected);
}

TEST(AudioWriter, SizesInTheHeaderAreRightAndOddDataIsPadded) {
  const Scratch scratch;
  const WriteOptions options{.sample_rate_hz = 8000, .channels = 1, .format = SampleFormat::pcm24};
  ASSERT_TRUE(write_file(scratch / "odd.wav", options, {0.5f}));
  const std::string bytes = read_bytes(scratch / "odd.wav");
  ASSERT_EQ(bytes.size() % 2, 0u);
  EXPECT_EQ(bytes.substr(0, 4), "RIFF");
  EXPECT_EQ(u32(bytes, 4), bytes.size() - 8);
  EXPECT_EQ(u32(bytes, bytes.size() - 8), 3u);  // data: 3 bytes and the pad
  EXPECT_EQ(bytes.substr(bytes.size() - 12, 4), "data");
}

TEST(AudioWriter, AnEmptyFileIsAFile) {
  const Scratch scratch;
  for (const char* name : {"e.wav", "e.flac"}) {
    ASSERT_TRUE(write_file(scratch / name, {.sample_rate_hz = 16000, .channels = 1}, {}));
    SF_INFO info{};
    SNDFILE* file = sf_open((scratch / name).c_str(), SFM_READ, &info);
    ASSERT_NE(file, nullptr) << name << ": " << sf_strerror(nullptr);
    sf_close(file);
    EXPECT_EQ(info.samplerate, 16000);
  }
  auto reader = AudioReader::open(scratch / "e.wav");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->frames(), 0);
  EXPECT_TRUE(read_all(*reader).samples.empty());
}

// The header of a file of 4.5 GB before a file of that size without content: libsndfile and our reader know
// its length.
TEST(AudioWriter, FilesAboveFourGigabytesAreRf64) {
  const Scratch scratch;
  const WriteOptions options{.sample_rate_hz = 48000, .channels = 2};
  const int64_t fits = (0xffffffffLL - 8 - 80) / 4;
  for (const int64_t frames : {fits, fits + 10, int64_t{1'125'000'000}}) {
    const auto header = wav_header(options, frames);
    EXPECT_EQ(header.size(), 80u);
    const std::string path = scratch / "large.wav";
    write_bytes(path, {reinterpret_cast<const char*>(header.data()), header.size()});
    std::error_code sparse;
    std::filesystem::resize_file(path, static_cast<uint64_t>(80 + 4 * frames), sparse);
    if (sparse) GTEST_SKIP() << "the scratch folder takes no sparse file of 4.5 GB";
    SF_INFO info{};
    SNDFILE* file = sf_open(path.c_str(), SFM_READ, &info);
    ASSERT_NE(file, nullptr) << sf_strerror(nullptr);
    sf_close(file);
    EXPECT_EQ(info.frames, frames);
    EXPECT_EQ(info.format & SF_FORMAT_TYPEMASK, frames > fits ? SF_FORMAT_RF64 : SF_FORMAT_WAV);
    const auto reader = AudioReader::open(path);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ(reader->frames(), frames);
  }
}

TEST(AudioWriter, LeavesNothingBehindWithoutFinish) {
  const Scratch scratch;
  write_bytes(scratch / "x.wav", "old");
  for (const char* name : {"x.wav", "y.flac"}) {
    auto writer = AudioWriter::create(scratch / name, {.sample_rate_hz = 8000, .channels = 1});
    ASSERT_TRUE(writer && writer->write(std::vector<float>(100000, 0.5f)));
  }
  EXPECT_EQ(read_bytes(scratch / "x.wav"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.root()), {}), 1);
}

TEST(AudioWriter, RefusesInOneLine) {
  const Scratch scratch;
  struct Case {
    std::string name;
    WriteOptions options;
    ErrorCode code;
    std::string part;
  };
  const WriteOptions good{.sample_rate_hz = 8000, .channels = 1};
  const std::vector<Case> cases = {
      {"x.mp3", good, ErrorCode::usage, "neither .wav nor .flac"},
      {"x.wav", {.sample_rate_hz = 0, .channels = 1}, ErrorCode::usage, "got 0"},
      {"x.wav", {.sample_rate_hz = 8000, .channels = 0}, ErrorCode::usage, "1 to 1024 channels, got 0"},
      {"x.flac", {.sample_rate_hz = 8000, .channels = 9}, ErrorCode::usage, "1 to 8 channels, got 9"},
      {"x.flac",
       {.sample_rate_hz = 8000, .channels = 1, .format = SampleFormat::float32},
       ErrorCode::usage,
       "float"},
      {"x.flac", {.sample_rate_hz = 700001, .channels = 1}, ErrorCode::usage, "700001 Hz"},
      {"no/x.wav", good, ErrorCode::io, "no folder"},
      {"", good, ErrorCode::io, "directory"},
  };
  for (const auto& [name, options, code, part] : cases) {
    const auto writer = AudioWriter::create(scratch / name, options);
    ASSERT_FALSE(writer) << name;
    EXPECT_EQ(writer.error().code, code) << name;
    EXPECT_NE(writer.error().message.find(part), std::string::npos) << writer.error().message;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.root()));
  const auto flac =
      AudioWriter::create("/dev/null", {.sample_rate_hz = 8000, .channels = 1, .type = AudioFileType::flac});
  ASSERT_FALSE(flac);
  EXPECT_NE(flac.error().message.find("pipe takes WAV"), std::string::npos);
}

TEST(AudioWriter, AFullDiskIsNoticed) {
  auto writer = AudioWriter::create("/dev/full", {.sample_rate_hz = 8000, .channels = 1});
  ASSERT_FALSE(writer);  // the header does not fit any more
  EXPECT_EQ(writer.error().code, ErrorCode::io);
  EXPECT_NE(writer.error().message.find("/dev/full"), std::string::npos);
}

TEST(AudioWriter, PartialFramesAndLateWritesAreMistakes) {
  const Scratch scratch;
  auto writer = AudioWriter::create(scratch / "x.wav", {.sample_rate_hz = 8000, .channels = 2});
  ASSERT_TRUE(writer);
  EXPECT_THROW((void)writer->write(std::vector<float>(3)), UsageError);
  ASSERT_TRUE(writer->finish());
  EXPECT_THROW((void)writer->write(std::vector<float>(2)), UsageError);
  EXPECT_THROW((void)writer->finish(), UsageError);
}

}  // namespace
}  // namespace tessera::test
