// AtomicFile: whole or not at all, for files; straight through for everything else.
#include "core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tessera-atomic-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  auto files() const { return std::distance(fs::directory_iterator(root_), {}); }
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static mode_t mode(const fs::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  fs::path root_;
};

TEST_F(AtomicFileTest, AppearsAtCommitOnly) {
  const fs::path path = root_ / "out";
  put(path, "before");
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->write("abcdef") && file->write("ghi"));
    const std::byte patch[] = {std::byte{'X'}, std::byte{'Y'}};
    ASSERT_TRUE(file->write_at(1, patch));
    EXPECT_EQ(file->size(), 9);
    EXPECT_EQ(content(path), "before");
    EXPECT_EQ(files(), 2);
    ASSERT_TRUE(file->commit());
    EXPECT_EQ(content(path), "aXYdefghi");
    EXPECT_EQ(files(), 1);
    EXPECT_THROW((void)file->write("late"), UsageError);
    EXPECT_THROW((void)file->commit(), UsageError);
  }
  EXPECT_EQ(content(path), "aXYdefghi");
}

TEST_F(AtomicFileTest, DroppedLeavesNothing) {
  {
    auto one = AtomicFile::create(root_ / "a");
    auto two = AtomicFile::create(root_ / "b");
    ASSERT_TRUE(one && two && one->write("1") && two->write("2"));
    EXPECT_EQ(files(), 2);
    *one = *std::move(two);  // the first is dropped here
    EXPECT_EQ(files(), 1);
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(AtomicFileTest, TwoOpenFilesDoNotMeet) {
  auto one = AtomicFile::create(root_ / "same");
  auto two = AtomicFile::create(root_ / "same");
  ASSERT_TRUE(one && two && one->write("one") && two->write("two"));
  ASSERT_TRUE(two->commit() && one->commit());
  EXPECT_EQ(content(root_ / "same"), "one");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, PermissionsAreThoseOfANewFileOrOfTheOldOne) {
  const mode_t old = umask(027);
  auto fresh = AtomicFile::create(root_ / "fresh");
  umask(old);
  ASSERT_TRUE(fresh && fresh->commit());
  EXPECT_EQ(mode(root_ / "fresh"), 0640u);
  put(root_ / "kept", "x");
  ASSERT_EQ(chmod((root_ / "kept").c_str(), 0604), 0);
  auto kept = AtomicFile::create(root_ / "kept");
  ASSERT_TRUE(kept && kept->commit());
  EXPECT_EQ(mode(root_ / "kept"), 0604u);
}

TEST_F(AtomicFileTest, LinksStayLinks) {
  fs::create_directory(root_ / "deep");
  fs::create_symlink("deep/target", root_ / "link");  // dangling at first
  for (const char* text : {"first", "second"}) {
    auto file = AtomicFile::create(root_ / "link");
    ASSERT_TRUE(file && file->write(text) && file->commit());
    EXPECT_TRUE(fs::is_symlink(root_ / "link"));
    EXPECT_EQ(content(root_ / "deep/target"), text);
  }
  fs::create_symlink("loop", root_ / "loop");
  EXPECT_FALSE(AtomicFile::create(root_ / "loop"));
}

TEST_F(AtomicFileTest, RelativeNames) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  auto file = AtomicFile::create("here");
  const bool good = file && file->write("x") && file->commit();
  fs::current_path(before);
  EXPECT_TRUE(good);
  EXPECT_EQ(content(root_ / "here"), "x");
}

TEST_F(AtomicFileTest, ErrorsSayWhy) {
  put(root_ / "file", "x");
  for (const auto& [path, part] : {std::pair<std::string, std::string>{root_ / "no/such", "no folder"},
                                   {root_.string(), "directory"},
                                   {root_ / "file/x", "no folder"},
                                   {root_ / "new/", ""},
                                   {"", "name is empty"}}) {
    const auto file = AtomicFile::create(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, ErrorCode::io);
    EXPECT_NE(file.error().message.find(part), std::string::npos) << file.error().message;
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, ProtectedFilesAndFolders) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  put(root_ / "file", "x");
  ASSERT_EQ(chmod((root_ / "file").c_str(), 0444), 0);
  EXPECT_FALSE(AtomicFile::create(root_ / "file"));
  ASSERT_EQ(chmod(root_.c_str(), 0555), 0);
  const auto file = AtomicFile::create(root_ / "new");
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("takes no new file"), std::string::npos) << file.error().message;
}

TEST_F(AtomicFileTest, AFailedCommitLeavesNothing) {
  auto file = AtomicFile::create(root_ / "late");
  ASSERT_TRUE(file && file->write("x"));
  fs::create_directories(root_ / "late/full");  // a folder took the name meanwhile
  const auto committed = file->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::io);
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, DevicesAndPipesAreWrittenStraightThrough) {
  auto null = AtomicFile::create("/dev/null");
  ASSERT_TRUE(null && null->write("gone") && !null->seekable());
  EXPECT_THROW((void)null->write_at(0, {}), UsageError);
  EXPECT_TRUE(null->commit());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));

  const std::string fifo = root_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = content(fifo); });
  auto pipe = AtomicFile::create(fifo);
  ASSERT_TRUE(pipe && pipe->write("through") && pipe->commit());
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(fs::is_fifo(fifo));

  auto full = AtomicFile::create("/dev/full");
  ASSERT_TRUE(full);
  const auto written = full->write("x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/dev/full: No space left"), std::string::npos)
      << written.error().message;
}

TEST_F(AtomicFileTest, StandardOutputStaysOpen) {
  auto out = AtomicFile::create("-");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->name(), "standard output");
  EXPECT_TRUE(out->commit());
  struct stat status {};
  EXPECT_EQ(fstat(STDOUT_FILENO, &status), 0);
}

}  // namespace
}  // namespace tessera
