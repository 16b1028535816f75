// A damaged byte costs its segment: it is concealed and reported, and everything else stays as it was.
#include <algorithm>

#include "support.h"

namespace tessera::test {
namespace {

using DamageTest = CommandTest;

TEST_F(DamageTest, OneByteCostsOneSegment) {
  write_wav("in.wav", voice(7.5));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "whole.wav"});
  const Sound whole = read_wav("whole.wav");
  std::string bytes = read("x.tsr");
  bytes[bytes.size() * 2 / 5] ^= 0x10;
  write("hurt.tsr", bytes);

  const Outcome run = tessera({"decode", "hurt.tsr", "hurt.wav", "--json"});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_NE(run.err.find("tessera: decode: warning: hurt.tsr: "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("concealed"), std::string::npos) << run.err;
  const auto json = run.json();
  const int lost = json["lost_frames"];
  EXPECT_GT(lost, 0);
  EXPECT_LE(lost, 4 * 50);
  EXPECT_EQ(json["damaged"], true);

  const Sound hurt = read_wav("hurt.wav");
  ASSERT_EQ(hurt.samples.size(), whole.samples.size());
  std::size_t first = 0, last = 0;
  for (std::size_t i = 0; i < whole.samples.size(); ++i) {
    if (hurt.samples[i] == whole.samples[i]) continue;
    if (last == 0) first = i;
    last = i;
  }
  EXPECT_GT(first, 16000u);
  // Behind the gap the decoder needs as long as it looks back to be itself again: below 1.5 s.
  EXPECT_LT(last - first, static_cast<std::size_t>(lost) * 320 + 24000);
  EXPECT_LT(last, whole.samples.size() - 16000);
}

TEST_F(DamageTest, InfoListsItAndTokensRefuse) {
  write_wav("in.wav", voice(4));
  ok({"encode", "in.wav", "x.tsr"});
  std::string bytes = read("x.tsr");
  bytes[bytes.size() / 2] ^= 0x10;
  write("hurt.tsr", bytes);
  const Outcome info = tessera({"info", "hurt.tsr", "--json"});
  EXPECT_EQ(info.exit_code, 7);
  EXPECT_EQ(info.json()["damaged"], true);
  ASSERT_EQ(info.json()["problems"].size(), 1u);
  const std::string problem = info.json()["problems"][0];
  EXPECT_NE(problem.find("0:02.0 to 0:03.0 lost"), std::string::npos) << problem;
  const Outcome tokens = tessera({"tokens", "hurt.tsr", "t.npy"});
  EXPECT_EQ(tokens.exit_code, 7);
  EXPECT_NE(tokens.err.find("cannot have gaps"), std::string::npos) << tokens.err;
  EXPECT_EQ(listing(), (std::vector<std::string>{"hurt.tsr", "in.wav", "x.tsr"}));
}

TEST_F(DamageTest, ACutFileGivesWhatItHas) {
  write_wav("in.wav", voice(4));
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "whole.wav"});
  const std::string bytes = read("x.tsr");
  write("cut.tsr", bytes.substr(0, bytes.size() * 3 / 5));
  for (const char* line : {"\"$T\" decode cut.tsr cut.wav", "cat cut.tsr | \"$T\" decode - cut.wav"}) {
    const Outcome run = shell(line);
    EXPECT_EQ(run.exit_code, 7) << run.err;
    EXPECT_NE(run.err.find("warning"), std::string::npos);
    const Sound whole = read_wav("whole.wav"), cut = read_wav("cut.wav");
    ASSERT_GT(cut.samples.size(), 16000u);
    ASSERT_LT(cut.samples.size(), whole.samples.size());
    EXPECT_TRUE(std::equal(cut.samples.begin(), cut.samples.begin() + 16000, whole.samples.begin()));
  }
}

TEST_F(DamageTest, ADamagedRecordingIsCodedAsFarAsItGoes) {
  const std::string wav = wav_bytes(voice(1), 16);
  write("cut.wav", wav.substr(0, wav.size() / 2));
  const Outcome run = tessera({"encode", "cut.wav", "x.tsr", "--json"});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_NE(run.err.find("warning"), std::string::npos) << run.err;
  EXPECT_EQ(run.json()["damaged"], true);
  EXPECT_EQ(run.json()["samples"], (wav.size() / 2 - 44) / 2);
}

}  // namespace
}  // namespace tessera::test
