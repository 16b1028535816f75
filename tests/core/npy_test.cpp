// .npy: files laid out by hand in every version, order and dtype that is read, round trips, damage, headers
// that lie, and files written by NumPy when the fixtures are present.
#include "core/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/error.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes npy(std::string_view header, std::string_view data, int major = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) text += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes_of(text.append(header).append(data));
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

template <class T>
std::string data_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  return {tensor.as<T>(), tensor.as<T>() + tensor.size()};
}

template <class T>
Bytes written(const Shape& shape, const std::vector<T>& values) {
  Bytes out;
  const ByteSink sink = [&out](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return Result<void>();
  };
  EXPECT_TRUE(write_npy(sink, shape, std::span<const T>(values)));
  return out;
}

template <class T>
void expect_reads(const std::string& descr, DType type) {
  const std::vector<T> values = {1, 2, static_cast<T>(-3)};
  for (int major = 1; major <= 3; ++major) {
    const auto array = parse_npy(npy(dict(descr, "False", "(3,)"), data_of(values), major), "a").value();
    EXPECT_EQ(array.dtype(), type) << descr;
    EXPECT_EQ(array.shape(), Shape{3});
    EXPECT_EQ(values_of<T>(array), values);
  }
}

TEST(Npy, ReadsEveryDtypeInEveryVersion) {
  expect_reads<float>("<f4", DType::f32);
  expect_reads<double>("<f8", DType::f64);
  expect_reads<std::int16_t>("<i2", DType::i16);
  expect_reads<std::int32_t>("<i4", DType::i32);
  expect_reads<std::int64_t>("<i8", DType::i64);
  expect_reads<std::int8_t>("|i1", DType::i8);
  expect_reads<std::uint8_t>("|u1", DType::u8);
}

TEST(Npy, TransposesFortranOrder) {
  const std::vector<std::int16_t> stored = {0, 1, 2, 3, 4, 5};  // [2, 3], columns one after another
  const auto matrix = parse_npy(npy(dict("<i2", "True", "(2, 3)"), data_of(stored)), "a").value();
  EXPECT_EQ(values_of<std::int16_t>(matrix), (std::vector<std::int16_t>{0, 2, 4, 1, 3, 5}));
  const auto vector = parse_npy(npy(dict("<i2", "True", "(6,)"), data_of(stored)), "a").value();
  EXPECT_EQ(values_of<std::int16_t>(vector), stored);
  std::vector<std::uint8_t> cube(24), expected;
  for (std::size_t i = 0; i < 24; ++i) cube[i] = static_cast<std::uint8_t>(i);
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 4; ++c) expected.push_back(static_cast<std::uint8_t>(a + 2 * b + 6 * c));
    }
  }
  const auto three = parse_npy(npy(dict("|u1", "True", "(2, 3, 4)"), data_of(cube)), "a").value();
  EXPECT_EQ(values_of<std::uint8_t>(three), expected);
}

TEST(Npy, AcceptsOtherSpellingsOfTheHeader) {
  const auto one =
      parse_npy(npy("{\"shape\":(),\"descr\":\"|u1\",'fortran_order':False}", "\x05"), "a").value();
  EXPECT_EQ(one.shape(), Shape{});
  EXPECT_EQ(*one.as<std::uint8_t>(), 5);
  EXPECT_EQ(parse_npy(npy(dict("<f4", "False", "(0, 7)"), ""), "a").value().shape(), (Shape{0, 7}));
}

TEST(Npy, WritesWhatItReads) {
  const std::vector<float> values = {1, -2, 0.5f, 4, 5, 6};
  for (const Shape& shape : {Shape{6}, Shape{2, 3}, Shape{1, 1, 6}, Shape{3, 1, 2, 1, 1}}) {
    const Bytes bytes = written(shape, values);
    EXPECT_EQ((bytes.size() - 24) % 64, 0u);
    const auto array = parse_npy(bytes, "a").value();
    EXPECT_EQ(array.shape(), shape);
    EXPECT_EQ(values_of<float>(array), values);
  }
  EXPECT_EQ(parse_npy(written<std::int32_t>({}, {7}), "a").value().as<std::int32_t>()[0], 7);
  EXPECT_EQ(parse_npy(written<std::int32_t>({8, 0}, {}), "a").value().shape(), (Shape{8, 0}));
  EXPECT_THROW(written<float>({7}, values), UsageError);
}

TEST(Npy, GoesThroughAFile) {
  const std::string path = testing::TempDir() + "tessera_array.npy";
  const std::vector<std::int32_t> values = {1, 2};
  ASSERT_TRUE(write_npy(path, {2, 1}, values));
  EXPECT_EQ(values_of<std::int32_t>(read_npy(path).value()), values);
  std::filesystem::remove(path);
  EXPECT_EQ(read_npy(path).error().code, ErrorCode::io);
}

TEST(Npy, RefusesHeadersThatLie) {
  struct Lie {
    Bytes bytes;
    std::string message;
    ErrorCode code = ErrorCode::format;
  };
  const auto four = [](const std::string& header) { return npy(header, "1234"); };
  const Lie lies[] = {
      {bytes_of(""), "begins with"},
      {bytes_of("PK\3\4 an .npz file"), "begins with"},
      {npy("", "", 4), "version 1.0, 2.0 or 3.0, got 4.0", ErrorCode::unsupported},
      {npy(std::string(65536, ' '), "", 2), "claims 65536 bytes"},
      {bytes_of(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{", 13)),
       "claims 4294967295 bytes, the file has 1"},
      {four(dict(">f4", "False", "(1,)")), "dtype \">f4\" is not supported, only <f4",
       ErrorCode::unsupported},
      {four(dict("|O", "False", "(1,)")), "dtype \"|O\" is not supported", ErrorCode::unsupported},
      {four("{'descr': [('a', '<f4')], 'shape': (1,)}"), "structured", ErrorCode::unsupported},
      {four(dict("<f4", "False", "(2,)")), "expected 8 bytes of data for f32 [2], got 4"},
      {four(dict("<f4", "False", "(0,)")), "expected 0 bytes of data for f32 [0], got 4"},
      {four(dict("<f4", "False", "(4294967296, 4294967296)")), "more than 2^63 bytes"},
      {four(dict("<f4", "False", "(0, 4294967296, 4294967296)")), "more than 2^63 bytes"},
      {four(dict("<f4", "False", "(9223372036854775808,)")), "extent from 0 to 2^63 - 1"},
      {four(dict("<f4", "False", "(-1,)")), "extent from 0 to 2^63 - 1"},
      {four(dict("<f4", "False", "(1.0,)")), "expected ',' or ')'"},
      {four(dict("<f4", "False", "(1,,)")), "extent"},
      {four(dict("<f4", "False", "[1]")), "expected '('"},
      {four(dict("<f4", "False", "(1,1,1,1,1,1)")), "more than 5 axes", ErrorCode::unsupported},
      {four(dict("<f4", "0", "(1,)")), "expected True or False"},
      {four("{'descr': '<f4', 'shape': (1,)}"), "expected descr, fortran_order and shape"},
      {four("{'descr': '<f4', 'descr': '<f4'}"), "once each, got \"descr\""},
      {four("{'colour': 1}"), "once each, got \"colour\""},
      {four("{'descr: <f4"), "the string has no end (header, byte 11)"},
      {four("{'descr': '<f4' 'shape'"), "expected ',' or '}'"},
      {four(dict("<f4", "False", "(1,)") + "x"), "nothing after the dict"},
      {four(std::string(60000, '(')), "expected '{'"},
  };
  for (const Lie& lie : lies) {
    const auto array = parse_npy(lie.bytes, "a");
    ASSERT_FALSE(array) << lie.message;
    EXPECT_NE(array.error().message.find(lie.message), std::string::npos)
        << lie.message << ": " << array.error().message;
    EXPECT_TRUE(array.error().message.starts_with("a: "));
    EXPECT_EQ(array.error().code, lie.code) << lie.message;
  }
}

TEST(Npy, SurvivesEveryTruncationAndEveryFlippedByte) {
  const Bytes good = written<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_npy(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), "a"))
        << size;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int mask : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(mask);
      const auto array = parse_npy(bad, "a");
      if (array) {
        EXPECT_EQ(array->bytes(), 24u) << "byte " << i;
      }
    }
  }
}

TEST(Npy, ReadsAndReproducesWhatNumPyWrote) {
  const std::string path = std::string(TESSERA_SHARED_DIR) + "/fixtures/mimi/speech_a.tokens.npy";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no fixture " << path;
  const auto tokens = read_npy(path).value();
  EXPECT_EQ(tokens.dtype(), DType::i32);
  EXPECT_EQ(tokens.shape(), (Shape{8, 30}));
  const auto values = values_of<std::int32_t>(tokens);
  EXPECT_EQ(std::vector(values.begin(), values.begin() + 4), (std::vector<std::int32_t>{48, 145, 27, 169}));
  std::ifstream in(path, std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(written(tokens.shape(), values), bytes_of(original));
}

}  // namespace
}  // namespace tessera
