// Recordings of many kinds through encode and decode: exact lengths, rates and formats, and that it is the
// same sound.
#include <cmath>

#include "support.h"

namespace tessera::test {
namespace {

using RoundTripTest = CommandTest;

// The file's length at 16 kHz, rounded up.
std::int64_t coded_frames(const Sound& sound) {
  return (sound.frames() * 16000 + sound.rate_hz - 1) / sound.rate_hz;
}

double rms(const std::vector<float>& samples) {
  double sum = 0;
  for (const float value : samples) sum += static_cast<double>(value) * value;
  return samples.empty() ? 0 : std::sqrt(sum / static_cast<double>(samples.size()));
}

TEST_F(RoundTripTest, LengthRateAndChannelsOfEveryFormat) {
  struct Case {
    double seconds;
    int rate_hz, channels, bits;
  };
  for (const Case& c : {Case{0.9, 16000, 1, 16}, Case{0.51, 16000, 2, 16}, Case{0.7, 44100, 2, 16},
                        Case{0.333, 8000, 1, 8}, Case{0.4, 48000, 1, 24}, Case{0.45, 22050, 3, 32}}) {
    SCOPED_TRACE(testing::Message() << c.rate_hz << " Hz, " << c.channels << " channels, " << c.bits
                                    << " bits");
    const Sound sound = voice(c.seconds, c.rate_hz, c.channels);
    write_wav("in.wav", sound, c.bits);
    const auto encoded = ok({"encode", "in.wav", "x.tsr", "--json"}).json();
    EXPECT_EQ(encoded["samples"], coded_frames(sound));
    EXPECT_EQ(encoded["channels"], c.channels);
    EXPECT_EQ(encoded["bytes"], read("x.tsr").size());
    EXPECT_DOUBLE_EQ(encoded["kbps"], read("x.tsr").size() * 8 / 1000.0 / encoded["seconds"].get<double>());
    const auto decoded = ok({"decode", "x.tsr", "out.wav", "--json"}).json();
    const Sound out = read_wav("out.wav");
    EXPECT_EQ(out.frames(), coded_frames(sound));
    EXPECT_EQ(out.channels, c.channels);
    EXPECT_EQ(out.rate_hz, 16000);
    EXPECT_EQ(decoded["samples"], out.frames());
    EXPECT_EQ(decoded["lost_frames"], 0);
    EXPECT_NEAR(rms(out.samples) / rms(sound.samples), 1, 0.3);
  }
}

TEST_F(RoundTripTest, DecodedSoundIsAlignedWithTheInput) {
  const Sound sound = voice(2);
  write_wav("in.wav", sound, 32);
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "out.wav", "--bits", "float"});
  const Sound out = read_wav("out.wav");
  ASSERT_EQ(out.samples.size(), sound.samples.size());
  const auto correlation = [&](int shift) {
    double sum = 0;
    for (std::size_t i = 1000; i + 1000 < out.samples.size(); ++i) {
      sum += static_cast<double>(out.samples[i]) *
             sound.samples[static_cast<std::size_t>(static_cast<int>(i) + shift)];
    }
    return sum;
  };
  int best = -50;
  for (int shift = -50; shift <= 50; ++shift) {
    if (correlation(shift) > correlation(best)) best = shift;
  }
  EXPECT_EQ(best, 0);
  EXPECT_GT(correlation(0) /
                (rms(out.samples) * rms(sound.samples) * static_cast<double>(out.samples.size() - 2000)),
            0.8);
}

TEST_F(RoundTripTest, OneSampleAndLengthsAroundAFrame) {
  for (const int samples : {1, 320, 321}) {
    SCOPED_TRACE(samples);
    Sound sound = voice(0.1);
    sound.samples.resize(static_cast<std::size_t>(samples));
    write_wav("in.wav", sound);
    const auto encoded = ok({"encode", "in.wav", "x.tsr", "--json", "-n", "1"}).json();
    EXPECT_EQ(encoded["frames"], (samples + 1120 + 319) / 320);
    ok({"decode", "x.tsr", "out.wav"});
    EXPECT_EQ(read_wav("out.wav").frames(), samples);
  }
}

TEST_F(RoundTripTest, NoSamplesAtAll) {
  write_wav("in.wav", Sound{});
  const auto encoded = ok({"encode", "in.wav", "x.tsr", "--json"}).json();
  EXPECT_EQ(encoded["samples"], 0);
  EXPECT_EQ(encoded["frames"], 0);
  EXPECT_EQ(encoded["kbps"], 0);
  ok({"decode", "x.tsr", "out.wav"});
  EXPECT_EQ(read_wav("out.wav").frames(), 0);
}

TEST_F(RoundTripTest, EveryChannelIsCodedAsIfAlone) {
  const Sound both = voice(0.6, 16000, 2);
  Sound left{16000, 1, {}};
  for (std::int64_t i = 0; i < both.frames(); ++i)
    left.samples.push_back(both.samples[static_cast<std::size_t>(2 * i)]);
  write_wav("both.wav", both);
  write_wav("left.wav", left);
  const Outcome run = ok({"encode", "both.wav", "both.tsr"});
  EXPECT_NE(run.err.find("note: coding 2 channels as 2 streams"), std::string::npos) << run.err;
  ok({"encode", "left.wav", "left.tsr"});
  ok({"encode", "both.wav", "chosen.tsr", "--mono", "left"});
  EXPECT_EQ(read("chosen.tsr"), read("left.tsr"));
  ok({"decode", "both.tsr", "both_out.wav"});
  ok({"decode", "left.tsr", "left_out.wav"});
  const Sound both_out = read_wav("both_out.wav"), left_out = read_wav("left_out.wav");
  ASSERT_EQ(both_out.samples.size(), 2 * left_out.samples.size());
  for (std::size_t i = 0; i < left_out.samples.size(); ++i)
    ASSERT_EQ(both_out.samples[2 * i], left_out.samples[i]) << i;
}

TEST_F(RoundTripTest, FewerCodebooksOnDecodingAreTheFirstOfThoseCoded) {
  write_wav("in.wav", voice(0.5));
  ok({"encode", "in.wav", "all.tsr"});
  ok({"decode", "all.tsr", "all.wav"});
  ok({"decode", "all.tsr", "four.wav", "-n", "4"});
  ok({"tokens", "all.tsr", "four.npy", "-n", "4"});
  ok({"decode", "four.npy", "tokens.wav"});
  const Sound four = read_wav("four.wav");
  Sound tokens = read_wav("tokens.wav");
  tokens.samples.resize(four.samples.size());  // a token file does not know the length
  EXPECT_EQ(four.samples, tokens.samples);
  EXPECT_NE(four.samples, read_wav("all.wav").samples);
}

TEST_F(RoundTripTest, BothCodersGiveTheSameSound) {
  write_wav("in.wav", voice(0.5));
  ok({"encode", "in.wav", "a.tsr", "--coder", "adaptive"});
  ok({"encode", "in.wav", "b.tsr", "--coder", "pack"});
  EXPECT_NE(read("a.tsr"), read("b.tsr"));
  ok({"decode", "a.tsr", "a.wav"});
  ok({"decode", "b.tsr", "b.wav"});
  EXPECT_EQ(read("a.wav"), read("b.wav"));
}

TEST_F(RoundTripTest, AppendedFilesFollowEachOther) {
  write_wav("in.wav", voice(0.4));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "one.wav"});
  write("two.tsr", read("x.tsr") + read("x.tsr"));
  ok({"decode", "two.tsr", "two.wav"});
  const Sound one = read_wav("one.wav"), two = read_wav("two.wav");
  std::vector<float> twice = one.samples;
  twice.insert(twice.end(), one.samples.begin(), one.samples.end());
  EXPECT_EQ(two.samples, twice);
}

TEST_F(RoundTripTest, FlacAndSampleFormats) {
  write_wav("in.wav", voice(0.4));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "out.flac"});
  EXPECT_EQ(read("out.flac").substr(0, 4), "fLaC");
  ok({"decode", "x.tsr", "16.wav"});
  ok({"decode", "x.tsr", "float.wav", "--bits", "float"});
  const Sound rounded = read_wav("16.wav"), exact = read_wav("float.wav");
  ASSERT_EQ(rounded.samples.size(), exact.samples.size());
  for (std::size_t i = 0; i < exact.samples.size(); ++i)
    ASSERT_NEAR(rounded.samples[i], exact.samples[i], 0.51 / 32768);
}

TEST_F(RoundTripTest, LoweredPrecisionSoundsTheSame) {
  write_wav("in.wav", voice(0.5));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "f32.wav", "--bits", "float"});
  const Sound exact = read_wav("f32.wav");
  for (const char* precision : {"bf16", "int8"}) {
    ok({"decode", "x.tsr", "low.wav", "--bits", "float", "--precision", precision});
    Sound low = read_wav("low.wav");
    ASSERT_EQ(low.samples.size(), exact.samples.size());
    for (std::size_t i = 0; i < low.samples.size(); ++i) low.samples[i] -= exact.samples[i];
    EXPECT_LT(rms(low.samples), 0.2 * rms(exact.samples)) << precision;
  }
}

}  // namespace
}  // namespace tessera::test
