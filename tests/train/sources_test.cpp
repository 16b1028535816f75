// Which recordings are found, in which order, and what is said when there are none.
#include "train/data/sources.h"

#include <algorithm>

#include "data_support.h"

namespace tessera::train {
namespace {

using test::Scratch, test::write_text;

std::vector<std::string> names_of(const SourceFiles& found) {
  std::vector<std::string> names;
  for (const auto& file : found.files) names.push_back(file.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Sources, AFolderIsSearchedWithAllBelowInBytewiseOrder) {
  const Scratch scratch;
  for (const char* name : {"set/b.wav", "set/B.FLAC", "set/a/z.mp3", "set/a/deep/er/x.Opus", "set/a-.ogg",
                           "set/notes.txt", "set/.hidden.wav", "set/.trash/y.wav", "set/plain"})
    write_text(scratch / name, "x");
  SourceOptions options;
  options.sources = {scratch / "set"};
  const auto found = find_sources(options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(names_of(*found),
            (Names{"set/B.FLAC", "set/a-.ogg", "set/a/deep/er/x.Opus", "set/a/z.mp3", "set/b.wav"}));
  EXPECT_EQ(found->files[3].relative, "a/z.mp3");
  EXPECT_EQ(found->files[3].path, scratch / "set/a/z.mp3");
  options.sources = {scratch / "set/"};  // a slash at the end changes nothing
  EXPECT_EQ(names_of(*find_sources(options)), names_of(*found));
}

TEST(Sources, PatternsExcludeByPathOrName) {
  const Scratch scratch;
  for (const char* name : {"set/a/1.wav", "set/a/2.wav", "set/b/1.wav", "set/b/c/3.wav"})
    write_text(scratch / name, "x");
  SourceOptions options;
  options.sources = {scratch / "set"};
  options.exclude = {"1.wav", "b/c/*"};
  const auto found = find_sources(options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(names_of(*found), (Names{"set/a/2.wav"}));
  EXPECT_EQ(found->excluded, 3);
  options.exclude = {"*"};
  const auto none = find_sources(options);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("patterns excluded 4"), std::string::npos) << none.error().message;
}

TEST(Sources, AListNamesFilesRelativeToItself) {
  const Scratch scratch;
  write_text(scratch / "data/x.wav", "x");
  write_text(scratch / "lists/train.txt",
             "# the good ones\r\n\r\n../data/x.wav\r\nno/such.wav\n" + scratch / "lists/y.raw" + "\n");
  SourceOptions options;
  options.sources = {scratch / "lists/train.txt"};
  const auto found = find_sources(options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(names_of(*found), (Names{"../data/x.wav", "no/such.wav", "y.raw"}));
  EXPECT_EQ(found->files[0].path, scratch / "data/x.wav");
}

TEST(Sources, FilesNamedTwiceAreTakenOnce) {
  const Scratch scratch;
  write_text(scratch / "set/x.wav", "x");
  write_text(scratch / "set/y.wav", "y");
  write_text(scratch / "list.txt", "set/x.wav\nset/x.wav\n");
  std::filesystem::create_symlink("x.wav", scratch / "set/z.wav");
  std::filesystem::create_directory_symlink("..", scratch / "set/loop");
  SourceOptions options;
  options.sources = {scratch / "set/y.wav", scratch / "set", scratch / "list.txt"};
  const auto found = find_sources(options);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(names_of(*found), (Names{"y.wav", "set/x.wav"}));
  EXPECT_EQ(found->repeated, 4);  // y in the folder, z, and x twice in the list
}

TEST(Sources, WhatCannotBeASourceIsSaid) {
  const Scratch scratch;
  write_text(scratch / "set/readme.md", "x");
  write_text(scratch / "blank.lst", "\n# nothing\n");
  struct Case {
    std::vector<std::string> sources;
    ErrorCode code;
    std::string said;
  };
  const std::vector<Case> cases = {
      {{}, ErrorCode::usage, "no sources"},
      {{scratch / "gone"}, ErrorCode::io, "no such folder or file"},
      {{scratch / "set"}, ErrorCode::format, "looked for *.wav, *.flac, *.ogg"},
      {{scratch / "set"}, ErrorCode::format, "among 1 files"},
      {{scratch / "blank.lst"}, ErrorCode::format, "one path per line"},
      {{scratch / "set/readme.md"}, ErrorCode::usage, "expected a folder, a list (*.txt, *.list, *.lst)"},
      {{"/dev/null"}, ErrorCode::usage, "got a pipe or device"},
  };
  for (const auto& [sources, code, said] : cases) {
    SourceOptions options;
    options.sources = sources;
    const auto found = find_sources(options);
    ASSERT_FALSE(found) << said;
    EXPECT_EQ(found.error().code, code) << found.error().message;
    EXPECT_NE(found.error().message.find(said), std::string::npos) << found.error().message;
    if (!sources.empty()) {
      EXPECT_NE(found.error().message.find(sources[0]), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tessera::train
