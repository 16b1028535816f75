// Mapping files: content, moves, and things that are no readable file. Hashes against published values of
// XXH3.
#include "core/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.h"

namespace tessera {
namespace {

std::string temp_path(const std::string& name) {
  return testing::TempDir() + "tessera_mapped_" + name;
}

TEST(MappedFile, HoldsTheBytesAndSurvivesMoves) {
  const std::string path = temp_path("content");
  std::ofstream(path, std::ios::binary) << std::string("a\0b", 3);
  MappedFile first = MappedFile::open(path).value();
  const auto bytes = first.bytes();
  std::remove(path.c_str());
  MappedFile second;
  second = std::move(first);
  const MappedFile third(std::move(second));
  EXPECT_EQ(third.bytes().data(), bytes.data());
  ASSERT_EQ(third.bytes().size(), 3u);
  EXPECT_EQ(third.bytes()[2], std::byte{'b'});
}

TEST(MappedFile, NamesWhatIsWrong) {
  const auto message = [](const std::string& path) { return MappedFile::open(path).error().message; };
  const std::string path = temp_path("special");
  EXPECT_EQ(message(path), path + ": cannot open: No such file or directory");
  EXPECT_EQ(message(testing::TempDir()), testing::TempDir() + ": expected a file, got a directory");
  EXPECT_EQ(message("/dev/null"), "/dev/null: expected a regular file, got a pipe or device");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(message(path), path + ": expected a regular file, got a pipe or device");
  std::remove(path.c_str());
  std::ofstream(path).close();
  EXPECT_EQ(message(path), path + ": the file is empty");
  EXPECT_EQ(MappedFile::open(path).error().code, ErrorCode::format);
  std::remove(path.c_str());
}

TEST(Hash, AgreesWithPublishedValues) {
  const auto hash_of = [](std::string_view text) { return content_hash(std::as_bytes(std::span(text))); };
  EXPECT_EQ(hex(hash_of("")), "2d06800538d394c2");
  EXPECT_EQ(hex(hash_of("a")), "e6c632b61e964e1f");
  EXPECT_EQ(hex(hash_of("abc")), "78af5f94892f3950");
  EXPECT_EQ(hex(0x1f), "000000000000001f");
}

TEST(Hash, SeesOneBitInALongInput) {
  std::vector<std::byte> bytes(100'000, std::byte{7});
  const std::uint64_t before = content_hash(bytes);
  bytes[54'321] ^= std::byte{1};
  EXPECT_NE(content_hash(bytes), before);
}

}  // namespace
}  // namespace tessera
