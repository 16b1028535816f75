// Each mistake gives one line on stderr, its exit code, and leaves nothing behind.
#include <algorithm>

#include "support.h"

namespace tessera::test {
namespace {

class ErrorsTest : public CommandTest {
 protected:
  // Runs and expects the code, one line with the words, nothing on stdout and no new file.
  void expect_error(const std::vector<std::string>& arguments, int code, const std::string& words) const {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    SCOPED_TRACE(line);
    const auto before = listing();
    const Outcome run = tessera(arguments);
    EXPECT_EQ(run.exit_code, code) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err.compare(0, 9, "tessera: "), 0) << run.err;
    EXPECT_NE(run.err.find(words), std::string::npos) << run.err << "expected: " << words;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(listing(), before);
  }

  std::string shared(const std::string& path) const { return std::string(TESSERA_SHARED_DIR) + "/" + path; }
};

TEST_F(ErrorsTest, Usage) {
  write_wav("in.wav", voice(0.1));
  ok({"encode", "in.wav", "x.tsr"});
  expect_error({}, 2, "expected a command");
  expect_error({"transcode"}, 2, "unknown command transcode");
  expect_error({"encode", "in.wav"}, 2, "OUT is required");
  expect_error({"encode", "in.wav", "y.tsr", "--loud"}, 2, "--loud");
  expect_error({"encode", "in.wav", "in.wav"}, 2, "in.wav: input and output are the same file");
  expect_error({"encode", "in.wav", "./in.wav"}, 2, "input and output are the same file");
  expect_error({"decode", "x.tsr", "x.tsr"}, 2, "input and output are the same file");
  expect_error({"encode", "in.wav", "y.tsr", "-n", "17"}, 2, "expected 1 to 16 codebooks, got 17");
  expect_error({"decode", "x.tsr", "y.wav", "-n", "17"}, 2, "expected 1 to 16 codebooks, got 17");
  expect_error({"encode", "in.wav", "y.mp3"}, 2, "y.mp3: expected a file ending in .tsr");
  expect_error({"tokens", "in.wav", "y.csv"}, 2,
               "y.csv: expected a token file ending in .npy, .jsonl or .raw");
  expect_error({"tokens", "x.tsr", "y.npy", "--mono", "left"}, 2, "--mono");
  expect_error({"decode", "x.tsr", "y.mp3"}, 2, "y.mp3");
  expect_error({"decode", "x.tsr", "y.flac", "--bits", "float"}, 2, "y.flac");
  expect_error({"decode", "x.tsr", "y.wav", "--channels", "2"}, 2, "--channels");
  expect_error({"encode", "in.wav", "-", "--json"}, 2, "--json");
}

TEST_F(ErrorsTest, InputAndOutput) {
  write_wav("in.wav", voice(0.1));
  ok({"encode", "in.wav", "x.tsr"});
  expect_error({"encode", "missing.wav", "y.tsr"}, 3, "missing.wav");
  expect_error({"decode", "missing.tsr", "y.wav"}, 3, "missing.tsr");
  expect_error({"tokens", "missing.tsr", "y.npy"}, 3, "missing.tsr");
  expect_error({"info", "missing"}, 3, "missing");
  expect_error({"encode", ".", "y.tsr"}, 3, "directory");
  expect_error({"encode", "in.wav", "no/folder/y.tsr"}, 3, "no/folder");
  expect_error({"decode", "x.tsr", "no/folder/y.wav"}, 3, "no/folder");
  expect_error({"tokens", "x.tsr", "no/folder/y.npy"}, 3, "no/folder");
  expect_error({"encode", "in.wav", "/dev/full"}, 3, "No space left");
  expect_error({"decode", "x.tsr", "/dev/full"}, 3, "No space left");
  expect_error({"encode", "in.wav", "y.tsr", "--model", "missing.safetensors"}, 3, "missing.safetensors");
}

TEST_F(ErrorsTest, Formats) {
  write_wav("in.wav", voice(0.1));
  write("empty.wav", "");
  write("text.wav", "This is a letter, not a recording. It only has the name of one.\n");
  write("text.tsr", "This is a letter, not a recording. It only has the name of one.\n");
  write("empty.tsr", "");
  write("text.npy", "This is a letter");
  write("bad.safetensors", "This is a letter");
  write("high.jsonl", "{\"codebooks\": 1}\n{\"tokens\": [5000]}\n");
  expect_error({"encode", "empty.wav", "y.tsr"}, 4, "empty");
  expect_error({"encode", "text.wav", "y.tsr"}, 4, "text.wav");
  expect_error({"decode", "text.tsr", "y.wav"}, 4, "text.tsr");
  expect_error({"decode", "empty.tsr", "y.wav"}, 4, "empty");
  expect_error({"decode", "in.wav", "y.wav"}, 4, "in.wav");
  expect_error({"decode", "text.npy", "y.wav"}, 4, "text.npy");
  expect_error({"decode", "high.jsonl", "y.wav"}, 4, "5000");
  expect_error({"encode", "in.wav", "y.tsr", "--model", "bad.safetensors"}, 4, "bad.safetensors");
  expect_error({"info", "text.wav"}, 4, "text.wav");
  expect_error({"info", "text.tsr"}, 4, "text.tsr");
}

TEST_F(ErrorsTest, AnotherModelIsNamedBesideTheRightOne) {
  const std::string other = shared("fixtures/mimi/hf.safetensors");
  if (!std::filesystem::exists(other)) GTEST_SKIP() << "no " << other;
  write_wav("in.wav", voice(0.5, 24000));
  const auto info = ok({"info", other, "--json"}).json();
  const std::string hash = info["weights_hash"],
                    own = ok({"models", "--json"}).json()["builtin"]["weights_hash"];
  ok({"encode", "in.wav", "mimi.tsr", "--model", other, "-q"});
  ok({"decode", "mimi.tsr", "mimi.wav", "--model", other, "-q"});
  EXPECT_EQ(read_wav("mimi.wav").frames(), 12000);
  expect_error({"decode", "mimi.tsr", "y.wav"}, 6, hash);
  expect_error({"decode", "mimi.tsr", "y.wav"}, 6, own);
  expect_error({"tokens", "mimi.tsr", "y.npy", "--model",
                std::string(TESSERA_SOURCE_DIR) + "/models/tessera_speech.safetensors"},
               6, hash);
  ok({"tokens", "mimi.tsr", "t.jsonl"});
  expect_error({"decode", "t.jsonl", "y.wav"}, 6, "family");
}

TEST_F(ErrorsTest, AnUnknownInstructionSetIsRefused) {
  const Outcome run = tessera({"--version"}, {"TESSERA_CPU=abacus"});
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_NE(run.err.find("abacus"), std::string::npos) << run.err;
}

TEST_F(ErrorsTest, AnAnswerThatCannotBeWrittenIsAnError) {
  const Outcome run = shell("\"$T\" models >/dev/full");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.err, "tessera: models: cannot write standard output\n");
}

TEST_F(ErrorsTest, AFailedRunLeavesAnOlderFileAlone) {
  write("y.tsr", "as before");
  write("text.wav", "not sound");
  EXPECT_EQ(tessera({"encode", "text.wav", "y.tsr"}).exit_code, 4);
  EXPECT_EQ(read("y.tsr"), "as before");
}

}  // namespace
}  // namespace tessera::test
