// Phone alignments: what they say of a frame, and what is wrong with a file.
#include "metrics/phone_alignment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tessera::metrics {
namespace {

namespace fs = std::filesystem;
using Labels = std::vector<std::int32_t>;

class PhoneAlignmentsTest : public testing::Test {
 protected:
  PhoneAlignmentsTest() : path_(fs::temp_directory_path() / ("tessera_align_" + std::to_string(getpid()))) {}
  ~PhoneAlignmentsTest() override {
    for (const char* end : {"", "2"}) fs::remove(path_.string() + end);
  }
  Result<PhoneAlignments> read(const std::string& text) {
    std::ofstream(path_) << text;
    const std::string paths[] = {path_.string()};
    return PhoneAlignments::read(paths);
  }
  void expect_error(const std::string& text, const std::string& message) {
    const auto result = read(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::format);
    EXPECT_EQ(result.error().message, path_.string() + ": " + message);
  }
  fs::path path_;
};

TEST_F(PhoneAlignmentsTest, LabelsTheMiddleOfEachFrame) {
  const auto alignments = read("one\t0:<sil> 4:AH 12:T 13:[NOISE] 20:</s>\r\n\ntwo.b\t2:T 4:</s>\n").value();
  EXPECT_EQ(alignments.phones(), (std::vector<std::string>{"<sil>", "AH", "T"}));
  EXPECT_EQ(alignments.size(), 2u);
  // 12.5 Hz: middles at 4, 12, 20 frames of 10 ms.
  EXPECT_EQ(alignments.labels("one", 3, 12.5).value(), (Labels{1, 2, -1}));
  EXPECT_EQ(alignments.labels("some/folder/one.flac", 5, 25).value(), (Labels{0, 1, 1, 0, 0}));
  EXPECT_EQ(alignments.labels("two.b.opus", 6, 100).value(), (Labels{-1, -1, 2, 2, -1, -1}));
  EXPECT_TRUE(alignments.contains("x/one.wav"));
  EXPECT_FALSE(alignments.contains("three"));
  EXPECT_EQ(alignments.labels("a/three.wav", 1, 12.5).error().message,
            "a/three.wav: expected an alignment, got none for three");
}

TEST_F(PhoneAlignmentsTest, FilesShareOneNumbering) {
  std::ofstream(path_) << "a\t0:AH 1:</s>\n";
  std::ofstream(path_.string() + "2") << "b\t0:T 1:AH 2:</s>\n";
  const std::string paths[] = {path_.string(), path_.string() + "2"};
  const auto alignments = PhoneAlignments::read(paths).value();
  EXPECT_EQ(alignments.classes(), 3);
  EXPECT_EQ(alignments.labels("b", 2, 100).value(), (Labels{2, 1}));
}

TEST_F(PhoneAlignmentsTest, HashIsThatOfOneRecording) {
  const std::string a = "a\t0:<sil> 4:AH 12:</s>\n", other = "b\t0:T 9:</s>\n";
  const std::string hash = read(a).value().hash("x/a.wav");
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(read(other + a).value().hash("a"), hash);  // another number for AH
  EXPECT_EQ(read(a).value().hash("b"), "");
  for (const char* changed : {"a\t0:<sil> 5:AH 12:</s>\n", "a\t0:<sil> 4:T 12:</s>\n",
                              "a\t0:<sil> 4:AH 13:</s>\n", "a\t0:<sil> 4:AH 12:T 13:</s>\n"}) {
    EXPECT_NE(read(changed).value().hash("a"), hash) << changed;
  }
}

TEST_F(PhoneAlignmentsTest, SaysWhatIsWrong) {
  expect_error("a 0:AH 1:</s>\n", "line 1: expected NAME<tab>FRAME:PHONE ..., got \"a 0:AH 1:</s>\"");
  expect_error("\t0:AH 1:</s>", "line 1: expected NAME<tab>FRAME:PHONE ..., got \"?0:AH 1:</s>\"");
  for (const std::string item :
       {"AH", ":AH", "1", "1:", "x:AH", "-1:AH", "1x:AH", "99999999999:AH", "1.5:AH"}) {
    expect_error("a\t0:T " + item + " 9:</s>", "line 1: expected FRAME:PHONE, got \"" + item + "\"");
  }
  expect_error("a\t0:T 0:S 9:</s>", "line 1: expected a frame above 0, got \"0:S\"");
  expect_error("a\t0:T 9:</s>\nb\t0:T 9:S", "line 2: expected FRAME:</s> at the end, got \"9:S\"");
  expect_error("a\t", "line 1: expected FRAME:</s> at the end, got \"\"");
  expect_error("a\t0:T 5:</s> 6:T", "line 1: expected nothing after </s>, got \"6:T\"");
  expect_error("a\t0:T 5:</s>\na\t0:T 5:</s>", "line 2: expected every recording once, got \"a\"");
  expect_error(std::string(1000, 'a'),
               "line 1: expected NAME<tab>FRAME:PHONE ..., got \"" + std::string(40, 'a') + "...\"");
  std::string many = "a\t";
  for (int i = 0; i < 1001; ++i) many += std::to_string(i) + ":P" + std::to_string(i) + " ";
  expect_error(many, "line 1: expected at most 1000 different phones, got \"P999\"");
  const std::string missing[] = {"/nowhere/a.tsv"}, folder[] = {fs::temp_directory_path().string()};
  EXPECT_EQ(PhoneAlignments::read(missing).error().message,
            "/nowhere/a.tsv: cannot open the alignments: No such file or directory");
  EXPECT_EQ(PhoneAlignments::read(folder).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tessera::metrics
