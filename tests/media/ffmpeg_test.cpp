// What the FFmpeg module decodes. The `ffmpeg` command makes the inputs; without it these tests are skipped.
#include <algorithm>

#include "support.h"

namespace tessera::test {
namespace {

constexpr int kRate = 44100;
constexpr size_t kFrames = 132301;

class Ffmpeg : public testing::Test {
 protected:
  void SetUp() override {
    if (!have_ffmpeg()) GTEST_SKIP() << "the ffmpeg command is not installed";
    // A sine whose first and last thirds are a fifth as loud: a shift or a missing end shows.
    x_ = sine(440, kRate, kFrames);
    for (size_t t = 0; t < kFrames; ++t) {
      if (t < kFrames / 3 || t > 2 * kFrames / 3) x_[t] *= 0.2f;
    }
    write_sndfile(scratch_ / "x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, kRate, 1, x_);
  }

  // x.wav through ffmpeg with `arguments` into `name`; false skips.
  bool make(const std::string& name, const std::string& arguments) {
    return ffmpeg("-i " + scratch_ / "x.wav" + " " + arguments + " " + scratch_ / name);
  }

  // Lossy, yet in place: the error is a small part of the signal.
  void expect_like_the_original(const std::vector<float>& y, double most) {
    double error = 0, signal = 0;
    for (size_t t = 0; t < std::min(y.size(), x_.size()); ++t) {
      error += (y[t] - x_[t]) * (y[t] - x_[t]);
      signal += x_[t] * x_[t];
    }
    EXPECT_LT(error / signal, most);
  }

  Scratch scratch_;
  std::vector<float> x_;
};

TEST_F(Ffmpeg, Mp3IsGapless) {
  if (!make("x.mp3", "-b:a 128k")) GTEST_SKIP() << "no MP3 encoder";
  auto reader = AudioReader::open(scratch_ / "x.mp3");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->input().container, "mp3");
  EXPECT_NEAR(reader->input().duration_s.value_or(0), 3.0, 0.1);
  const Sound sound = read_all(*reader);
  EXPECT_EQ(sound.samples.size(), kFrames);
  expect_like_the_original(sound.samples, 1e-2);
  EXPECT_EQ(sound.error, "");
}

TEST_F(Ffmpeg, M4aWithCoverArtIsGapless) {
  ASSERT_TRUE(ffmpeg("-f lavfi -i testsrc=s=64x64:d=1:r=1 -frames:v 1 " + scratch_ / "cover.jpg"));
  if (!make("x.m4a", "-i " + scratch_ / "cover.jpg" +
                         " -map 0 -map 1 -c:v mjpeg -disposition:v attached_pic -c:a aac -b:a 128k")) {
    GTEST_SKIP() << "no AAC encoder";
  }
  const Sound sound = read_file(scratch_ / "x.m4a");
  // The edit list says the length in milliseconds: 3.000 s of 132301 / 44100 s.
  EXPECT_NEAR(static_cast<double>(sound.samples.size()), kFrames, 45);
  expect_like_the_original(sound.samples, 1e-2);
  EXPECT_EQ(sound.error, "");
}

TEST_F(Ffmpeg, OpusIsGapless) {
  if (!make("x.opus", "-c:a libopus -b:a 96k")) GTEST_SKIP() << "no Opus encoder";
  const Sound sound = read_file(scratch_ / "x.opus");
  EXPECT_EQ(sound.rate, 48000);  // Opus has no other
  EXPECT_NEAR(static_cast<double>(sound.samples.size()), static_cast<double>(kFrames) * 48000 / kRate, 1);
  const Sound back = read_file(scratch_ / "x.opus", {.sample_rate_hz = kRate});
  expect_like_the_original(back.samples, 1e-2);
}

TEST_F(Ffmpeg, SoundOfAVideo) {
  ASSERT_TRUE(make("x.mkv", "-f lavfi -i testsrc=s=64x64:d=3 -map 0 -map 1 -c:v mpeg4 -c:a flac"));
  const Sound sound = read_file(scratch_ / "x.mkv");
  EXPECT_EQ(sound.samples, read_file(scratch_ / "x.wav").samples);
  EXPECT_TRUE(sound.notes.empty());
}

TEST_F(Ffmpeg, VideoWithoutSound) {
  ASSERT_TRUE(ffmpeg("-f lavfi -i testsrc=s=64x64:d=1 -an -c:v mpeg4 " + scratch_ / "silent.mp4"));
  const auto reader = AudioReader::open(scratch_ / "silent.mp4");
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::format);
  EXPECT_NE(reader.error().message.find("no sound in it"), std::string::npos) << reader.error().message;
}

TEST_F(Ffmpeg, OneOfSeveralStreamsIsNamed) {
  ASSERT_TRUE(make("two.mka", "-map 0 -map 0 -c:a flac -ac:a:0 2"));
  const Sound sound = read_file(scratch_ / "two.mka");
  ASSERT_EQ(sound.notes.size(), 1u);
  EXPECT_EQ(sound.notes[0].substr(0, 23), "took sound stream 1 of ") << sound.notes[0];
  EXPECT_EQ(sound.channels, 2);
}

TEST_F(Ffmpeg, FivePointOneWav) {
  ASSERT_TRUE(make("six.wav", "-af 'pan=5.1|FL=c0|FR=0.5*c0|FC=c0|LFE=0*c0|BL=c0|BR=0*c0' -c:a pcm_s24le"));
  const Sound six = read_file(scratch_ / "six.wav");
  ASSERT_EQ(six.channels, 6);
  EXPECT_EQ(six.samples.size(), 6 * kFrames);
  const Sound mix = read_file(scratch_ / "six.wav", {.channels = ChannelMode::mix});
  const Sound original = read_file(scratch_ / "x.wav");
  for (size_t t = 0; t < kFrames; t += 101)
    ASSERT_NEAR(mix.samples[t], original.samples[t] * 3.5f / 6, 1e-5f);
}

TEST_F(Ffmpeg, TruncatedMp4DeliversItsStart) {
  if (!make("x.m4a", "-c:a aac -movflags +faststart")) GTEST_SKIP() << "no AAC encoder";
  const Sound whole = read_file(scratch_ / "x.m4a");
  std::filesystem::resize_file(scratch_ / "x.m4a", std::filesystem::file_size(scratch_ / "x.m4a") / 2);
  const Sound half = read_file(scratch_ / "x.m4a");
  EXPECT_NE(half.error.find("damaged"), std::string::npos) << half.error;
  ASSERT_GT(half.samples.size(), 20000u);
  ASSERT_LT(half.samples.size(), whole.samples.size());
  EXPECT_TRUE(std::equal(half.samples.begin(), half.samples.begin() + 20000, whole.samples.begin()));
}

TEST_F(Ffmpeg, Mp4WithoutItsIndexIsRefused) {
  if (!make("x.m4a", "-c:a aac")) GTEST_SKIP() << "no AAC encoder";
  std::filesystem::resize_file(scratch_ / "x.m4a", 20000);
  const auto reader = AudioReader::open(scratch_ / "x.m4a");
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().message.find("index is missing"), std::string::npos) << reader.error().message;
}

TEST_F(Ffmpeg, DamagedPacketsAreReported) {
  if (!make("x.m4a", "-c:a aac -movflags +faststart")) GTEST_SKIP() << "no AAC encoder";
  std::string bytes = read_bytes(scratch_ / "x.m4a");
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 3000; ++i)
    bytes[i] = static_cast<char>(i * 37 % 251);
  write_bytes(scratch_ / "bad.m4a", bytes);
  const Sound sound = read_file(scratch_ / "bad.m4a");
  EXPECT_NE(sound.error.find("did not decode"), std::string::npos) << sound.error;
  EXPECT_GT(sound.samples.size(), kFrames / 2);
}

}  // namespace
}  // namespace tessera::test
