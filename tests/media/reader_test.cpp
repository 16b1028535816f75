// Values of every lossless format, channel modes, piece sizes and notes, all through libsndfile.
#include <algorithm>
#include <cstdint>

#include "support.h"

namespace tessera::test {
namespace {

struct IntCase {
  const char* name;
  int format, bits;
};

class IntegerFormats : public testing::TestWithParam<IntCase> {};

TEST_P(IntegerFormats, AreValueOverTwoToTheBitsMinusOne) {
  const auto [name, format, bits] = GetParam();
  const Scratch scratch;
  const std::string path = scratch / name;
  // The extremes, zero, its neighbours and a spread; left-aligned as libsndfile takes them.
  const int64_t top = int64_t{1} << (bits - 1);
  std::vector<int> stored;
  std::vector<float> expected;
  for (int64_t i = -500; i <= 500; ++i) {
    const int64_t value = std::clamp(i * (top / 500 + 1), -top, top - 1);
    for (const int64_t v : {value, i % 3}) {
      stored.push_back(static_cast<int>(v * (int64_t{1} << (32 - bits))));
      expected.push_back(static_cast<float>(static_cast<double>(v) / static_cast<double>(top)));
    }
  }
  write_sndfile(path, format, 32000, 2, stored);
  auto reader = AudioReader::open(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->frames(), 1001);
  EXPECT_EQ(reader->input().frames, 1001);
  const Sound sound = read_all(*reader);
  EXPECT_EQ(sound.rate, 32000);
  EXPECT_EQ(sound.channels, 2);
  EXPECT_EQ(sound.samples, expected);
  EXPECT_EQ(sound.error, "");
  EXPECT_TRUE(sound.notes.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, IntegerFormats,
    testing::Values(IntCase{"u8.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 8},
                    IntCase{"s16.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16},
                    IntCase{"s24.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 24},
                    IntCase{"s32.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_32, 32},
                    IntCase{"x16.wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16, 16},
                    IntCase{"x24.wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_24, 24},
                    IntCase{"big.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, 16},
                    IntCase{"rf64.wav", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 16},
                    IntCase{"w64.w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 16},
                    IntCase{"a16.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 16},
                    IntCase{"a24.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_24, 24},
                    IntCase{"au.au", SF_FORMAT_AU | SF_FORMAT_PCM_16, 16},
                    IntCase{"caf.caf", SF_FORMAT_CAF | SF_FORMAT_PCM_24, 24},
                    IntCase{"f16.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16},
                    IntCase{"f24.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 24}),
    [](const auto& info) {
      return std::string(info.param.name).substr(0, std::string(info.param.name).find('.'));
    });

TEST(AudioReader, KeepsFloatsBeyondFullScale) {
  const Scratch scratch;
  const std::vector<float> samples = {0.0f, 1.0f, -1.0f, 2.5f, -7.25f, 1e-20f, 0.1f};
  write_sndfile(scratch / "f.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 24000, 1, samples);
  EXPECT_EQ(read_file(scratch / "f.wav").samples, samples);
  const std::vector<double> wide = {0.0, 1.0, -1.0, 0.1, 1.0 / 3, 3.5};
  write_sndfile(scratch / "d.wav", SF_FORMAT_WAVEX | SF_FORMAT_DOUBLE, 24000, 1, wide);
  EXPECT_EQ(read_file(scratch / "d.wav").samples, std::vector<float>(wide.begin(), wide.end()));
}

TEST(AudioReader, OggVorbisKeepsItsLength) {
  const Scratch scratch;
  const auto x = sine(440, 44100, 50001);
  write_sndfile(scratch / "v.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 44100, 1, x);
  const Sound sound = read_file(scratch / "v.ogg");
  ASSERT_EQ(sound.samples.size(), x.size());
  for (size_t t = 5000; t < 45000; t += 7) ASSERT_NEAR(sound.samples[t], x[t], 0.02) << t;
}

TEST(AudioReader, NamesAndExtensionsDoNotCount) {
  const Scratch scratch;
  write_sndfile(scratch / "song.mp3", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000, 1,
                std::vector<float>(10, 0.5f));
  EXPECT_EQ(read_file(scratch / "song.mp3").samples, std::vector<float>(10, 0.5f));
}

TEST(AudioReader, PieceSizeDoesNotMatter) {
  const Scratch scratch;
  auto x = sine(300, 44100, 2 * 30011);
  write_sndfile(scratch / "x.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, 2, x);
  for (const int rate : {0, 24000}) {
    for (const ChannelMode mode : {ChannelMode::keep, ChannelMode::mix}) {
      const ReadOptions options{.sample_rate_hz = rate, .channels = mode};
      const Sound whole = read_file(scratch / "x.wav", options, 100000);
      EXPECT_FALSE(whole.samples.empty());
      for (const size_t piece : {1, 7, 1920}) {
        EXPECT_EQ(read_file(scratch / "x.wav", options, piece).samples, whole.samples)
            << rate << " " << piece;
      }
    }
  }
}

TEST(AudioReader, ChannelModes) {
  const Scratch scratch;
  const std::vector<float> six = {0.5f, 0.25f, -0.125f, 1, 0.0625f, 0, -0.5f, 0.75f, 0, 0, 0, 0.125f};
  write_sndfile(scratch / "six.wav", SF_FORMAT_WAVEX | SF_FORMAT_FLOAT, 48000, 6, six);
  const auto with = [&](ChannelMode mode) { return read_file(scratch / "six.wav", {.channels = mode}); };
  EXPECT_EQ(with(ChannelMode::keep).samples, six);
  const Sound mix = with(ChannelMode::mix);
  EXPECT_EQ(mix.channels, 1);
  EXPECT_EQ(mix.samples, (std::vector<float>{1.6875f / 6, 0.375f / 6}));
  EXPECT_EQ(mix.notes, (std::vector<std::string>{"mixed 6 channels to 1 (plain mean)"}));
  EXPECT_EQ(with(ChannelMode::left).samples, (std::vector<float>{0.5f, -0.5f}));
  EXPECT_EQ(with(ChannelMode::left).notes, (std::vector<std::string>{"took the first of 6 channels"}));
  EXPECT_EQ(with(ChannelMode::right).samples, (std::vector<float>{0.25f, 0.75f}));

  write_sndfile(scratch / "one.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, 1, std::vector<float>{1, 2});
  const Sound right = read_file(scratch / "one.wav", {.channels = ChannelMode::right});
  EXPECT_EQ(right.samples, (std::vector<float>{1, 2}));
  EXPECT_EQ(right.notes, (std::vector<std::string>{"took the only channel: there is no right one"}));
  EXPECT_TRUE(read_file(scratch / "one.wav", {.channels = ChannelMode::mix}).notes.empty());
}

TEST(AudioReader, ResamplesWithANoteAndAnExactLength) {
  const Scratch scratch;
  const auto x = sine(1000, 44100, 44101);
  write_sndfile(scratch / "x.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, 1, x);
  auto reader = AudioReader::open(scratch / "x.wav", {.sample_rate_hz = 24000});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->frames(), 24001);
  EXPECT_EQ(reader->sample_rate_hz(), 24000);
  EXPECT_EQ(reader->input().sample_rate_hz, 44100);
  const Sound sound = read_all(*reader);
  EXPECT_EQ(sound.samples.size(), 24001u);
  EXPECT_EQ(sound.notes, (std::vector<std::string>{"resampled 44100 Hz -> 24000 Hz"}));
}

TEST(AudioReader, RoomForNoFrameIsAMistake) {
  const Scratch scratch;
  write_sndfile(scratch / "x.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, 2, std::vector<float>(8));
  auto reader = AudioReader::open(scratch / "x.wav");
  ASSERT_TRUE(reader);
  std::vector<float> one(1);
  EXPECT_THROW((void)reader->read(one), std::logic_error);
}

}  // namespace
}  // namespace tessera::test
