// Tokens as files: the same from sound and from .tsr, and decoding them gives the sound of the .tsr.
#include <algorithm>

#include "support.h"

namespace tessera::test {
namespace {

using TokensTest = CommandTest;

// The values of a NumPy file, as they lie there, after a look at its header.
std::vector<std::int32_t> npy_values(const std::string& bytes, const std::string& shape) {
  EXPECT_NE(bytes.find("'descr': '<i4'"), std::string::npos);
  EXPECT_NE(bytes.find("'shape': " + shape), std::string::npos) << bytes.substr(10, 100);
  const std::size_t start =
      10 + static_cast<unsigned char>(bytes.at(8)) + 256u * static_cast<unsigned char>(bytes.at(9));
  std::vector<std::int32_t> values((bytes.size() - start) / 4);
  std::copy_n(bytes.data() + start, values.size() * 4, reinterpret_cast<char*>(values.data()));
  return values;
}

TEST_F(TokensTest, FromSoundAndFromTheFileAreEqual) {
  write_wav("in.wav", voice(0.7, 16000, 2));
  ok({"encode", "in.wav", "x.tsr"});
  for (const std::string ending : {"npy", "jsonl", "raw"}) {
    const auto encoded = ok({"tokens", "in.wav", "a." + ending, "--json"}).json();
    const auto copied = ok({"tokens", "x.tsr", "b." + ending, "--json"}).json();
    EXPECT_FALSE(read("a." + ending).empty());
    EXPECT_EQ(read("a." + ending), read("b." + ending)) << ending;
    EXPECT_EQ(encoded["source"], "encoded");
    EXPECT_EQ(copied["source"], "read");
    EXPECT_EQ(encoded["frames"], copied["frames"]);
  }
}

TEST_F(TokensTest, LayoutsHoldTheSameNumbers) {
  write_wav("in.wav", voice(0.3));
  ok({"tokens", "in.wav", "t.npy", "-n", "3"});
  ok({"tokens", "in.wav", "t.raw", "-n", "3"});
  ok({"tokens", "in.wav", "t.jsonl", "-n", "3"});
  const int frames = (4800 + 1120 + 319) / 320;
  const auto npy = npy_values(read("t.npy"), "(3, 19)");
  const std::string raw = read("t.raw");
  ASSERT_EQ(raw.size(), static_cast<std::size_t>(frames * 3 * 4));
  std::vector<std::int32_t> flat(raw.size() / 4);
  std::copy_n(raw.data(), raw.size(), reinterpret_cast<char*>(flat.data()));
  std::istringstream lines(read("t.jsonl"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["codebooks"], 3);
  for (int f = 0; f < frames; ++f) {
    ASSERT_TRUE(std::getline(lines, line));
    const auto tokens = nlohmann::json::parse(line)["tokens"];
    for (int k = 0; k < 3; ++k) {
      const std::int32_t token = flat[static_cast<std::size_t>(f * 3 + k)];
      EXPECT_EQ(npy[static_cast<std::size_t>(k * frames + f)], token);
      EXPECT_EQ(tokens[static_cast<std::size_t>(k)], token);
    }
  }
}

TEST_F(TokensTest, DecodeLikeTheFile) {
  const Sound sound = voice(0.7, 16000, 2);
  write_wav("in.wav", sound);
  ok({"encode", "in.wav", "x.tsr"});
  ok({"decode", "x.tsr", "x.wav"});
  const Sound exact = read_wav("x.wav");
  for (const std::string ending : {"npy", "jsonl", "raw"}) {
    ok({"tokens", "x.tsr", "t." + ending});
    std::vector<std::string> arguments{"decode", "t." + ending, "t.wav"};
    if (ending == "raw") arguments.insert(arguments.end(), {"--channels", "2"});
    ok(arguments);
    // A token file does not know the length: the last frame comes out whole.
    Sound whole = read_wav("t.wav");
    EXPECT_GE(whole.frames(), exact.frames());
    EXPECT_LT(whole.frames(), exact.frames() + 320);
    whole.samples.resize(exact.samples.size());
    EXPECT_EQ(whole.samples, exact.samples) << ending;
  }
}

TEST_F(TokensTest, FewerCodebooks) {
  write_wav("in.wav", voice(0.4));
  ok({"encode", "in.wav", "four.tsr", "-n", "4"});
  ok({"decode", "four.tsr", "four.wav"});
  ok({"tokens", "in.wav", "four.npy", "-n", "4"});
  ok({"decode", "four.npy", "a.wav"});
  ok({"tokens", "in.wav", "four.raw", "-n", "4"});
  ok({"decode", "four.raw", "b.wav", "-n", "4"});
  EXPECT_EQ(read("a.wav"), read("b.wav"));
  ok({"tokens", "in.wav", "all.npy"});
  ok({"decode", "all.npy", "first.wav", "-n", "4"});
  EXPECT_EQ(read_wav("first.wav").samples.size(), read_wav("a.wav").samples.size());
  Sound cut = read_wav("a.wav");
  cut.samples.resize(6400);
  EXPECT_EQ(cut.samples, read_wav("four.wav").samples);
}

}  // namespace
}  // namespace tessera::test
