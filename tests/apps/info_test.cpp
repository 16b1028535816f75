// What info says about each kind of file, as JSON and as text; --quiet and notes.
#include "support.h"

namespace tessera::test {
namespace {

using InfoTest = CommandTest;

TEST_F(InfoTest, TsrFile) {
  write_wav("in.wav", voice(2.5, 16000, 2));
  const auto encoded = ok({"encode", "in.wav", "x.tsr", "--json", "-n", "5"}).json();
  const auto info = ok({"info", "x.tsr", "--json"}).json();
  EXPECT_EQ(info["kind"], "tsr");
  EXPECT_EQ(info["codec"], "tessera");
  EXPECT_EQ(info["coder"], "adaptive");
  EXPECT_EQ(info["exact_length"], true);
  EXPECT_EQ(info["damaged"], false);
  EXPECT_EQ(info["pre_skip"], 1120);
  for (const char* key :
       {"seconds", "samples", "bytes", "kbps", "frames", "codebooks", "channels", "sample_rate_hz"}) {
    EXPECT_EQ(info[key], encoded[key]) << key;
  }
  EXPECT_NE(ok({"info", "x.tsr"}).out.find("2.50 s"), std::string::npos);
}

TEST_F(InfoTest, WeightsAndMedia) {
  const auto weights =
      ok({"info", std::string(TESSERA_SOURCE_DIR) + "/models/tessera_speech.safetensors", "--json"}).json();
  EXPECT_EQ(weights["kind"], "weights");
  EXPECT_EQ(weights["family"], "tessera");
  EXPECT_EQ(weights["weights_hash"], ok({"models", "--json"}).json()["builtin"]["weights_hash"]);
  write_wav("in.wav", voice(0.5, 44100, 2));
  const auto media = ok({"info", "in.wav", "--json"}).json();
  EXPECT_EQ(media["kind"], "media");
  EXPECT_EQ(media["sample_rate_hz"], 44100);
  EXPECT_EQ(media["channels"], 2);
  EXPECT_EQ(media["samples"], 22050);
  EXPECT_EQ(media["seconds"], 0.5);
}

TEST_F(InfoTest, TokenFiles) {
  write_wav("in.wav", voice(0.5, 16000, 1));
  for (const std::string file : {"x.npy", "x.jsonl"}) {
    ok({"tokens", "in.wav", file});
    const auto info = ok({"info", file, "--json"}).json();
    EXPECT_EQ(info["kind"], "tokens");
    EXPECT_EQ(info["frames"], 29);  // 25 and four for the codec's delay
    EXPECT_EQ(info["codebooks"], 16);
  }
  EXPECT_NE(ok({"info", "x.jsonl"}).out.find("tessera"), std::string::npos);
}

TEST_F(InfoTest, HelpIsACommandToo) {
  EXPECT_EQ(ok({"help"}).out, ok({"--help"}).out);
}

TEST_F(InfoTest, VersionNamesTheModel) {
  const std::string hash = ok({"models", "--json"}).json()["builtin"]["weights_hash"];
  EXPECT_NE(ok({"--version"}).out.find(hash), std::string::npos);
}

TEST_F(InfoTest, NotesSayWhatWasDoneUnasked) {
  write_wav("in.wav", voice(0.3, 44100, 2));
  const Outcome run = ok({"encode", "in.wav", "x.tsr", "--json"});
  ASSERT_EQ(run.json()["notes"].size(), 2u) << run.out;  // two streams, resampled
  EXPECT_NE(run.err.find("44100"), std::string::npos) << run.err;
  EXPECT_EQ(ok({"encode", "in.wav", "x.tsr", "--quiet"}).err, "");
  const Outcome mixed = ok({"encode", "in.wav", "x.tsr", "--mono", "mix"});
  EXPECT_EQ(mixed.err.find("streams"), std::string::npos) << mixed.err;
}

}  // namespace
}  // namespace tessera::test
