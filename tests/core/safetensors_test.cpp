// safetensors: values against bytes laid out by hand, round trips, every truncation and every flipped byte of
// a small file, headers that lie, and a published layout when the fixtures are present.
#include "core/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/error.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Bytes file_of(std::string_view header, std::string_view data = "") {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), 8);
  return bytes_of(text.append(header).append(data));
}

template <class T>
std::span<const std::byte> raw(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

Bytes written(std::span<const NamedTensor> tensors, const Metadata& metadata = {}) {
  Bytes out;
  const auto done = write_safetensors(
      [&out](std::span<const std::byte> bytes) {
        out.insert(out.end(), bytes.begin(), bytes.end());
        return Result<void>();
      },
      tensors, metadata);
  EXPECT_TRUE(done);
  return out;
}

Error error_of(const Bytes& bytes) {
  const auto parsed = SafeTensors::parse(bytes, "m");
  return parsed ? Error{ErrorCode::usage, "no error"} : parsed.error();
}

std::string temp_path(const std::string& name) {
  return testing::TempDir() + "tessera_safetensors_" + name;
}

TEST(SafeTensors, ReadsBytesLaidOutByHand) {
  const std::string data("\x00\x00\xc0\x3f\x00\x00\x00\xc0\x07", 9);  // 1.5, -2, then one u8
  const Bytes bytes = file_of(
      R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"__metadata__":{"a":"b","c":"\u00e9"},)"
      R"("n":{"shape":[],"data_offsets":[8,9],"dtype":"U8"}}   )",
      data);
  const auto file = SafeTensors::parse(bytes, "m").value();
  EXPECT_EQ(file->names(), (std::vector<std::string>{"w", "n"}));
  EXPECT_EQ(file->read_f32("w", {1, 2}).value(), (std::vector<float>{1.5f, -2.0f}));
  const TensorView n = file->find("n").value();
  EXPECT_EQ(n.dtype, DType::u8);
  EXPECT_EQ(n.shape, Shape{});
  EXPECT_EQ(n.bytes.data(), bytes.data() + bytes.size() - 1);  // not copied
  EXPECT_EQ(file->metadata("a"), "b");
  EXPECT_EQ(file->metadata("c"), "\xc3\xa9");
  EXPECT_FALSE(file->metadata("w"));
  EXPECT_FALSE(file->find("x"));
  EXPECT_EQ(file->get("x").error().message, "m: expected a tensor \"x\", got none among 2");
  EXPECT_EQ(file->read_f32("w", {2}).error().message, "m: tensor \"w\": expected shape [2], got [1, 2]");
  EXPECT_EQ(file->read_f32("n").error().message, "m: tensor \"n\": expected f32, f16, bf16 or f64, got u8");
}

TEST(SafeTensors, WritesLargestElementsFirstThenByName) {
  const std::vector<float> f = {1, 2};
  const std::vector<std::uint8_t> u = {3};
  const std::vector<NamedTensor> tensors = {
      {"a", DType::u8, {1}, raw(u)}, {"c", DType::f32, {2}, raw(f)}, {"b", DType::f32, {1, 2}, raw(f)}};
  const Bytes bytes = written(tensors, {{"k\n", "v\""}});
  std::string header =
      R"({"__metadata__":{"k\n":"v\""},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("c":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"a":{"dtype":"U8","shape":[1],"data_offsets":[16,17]}})";
  header.resize((8 + header.size() + 63) / 64 * 64 - 8, ' ');
  const float values[] = {1, 2, 1, 2};
  std::string data(reinterpret_cast<const char*>(values), sizeof values);
  data += '\3';
  EXPECT_EQ(bytes, file_of(header, data));
  EXPECT_EQ((bytes.size() - data.size()) % 64, 0u);
  const std::vector<NamedTensor> shuffled = {tensors[2], tensors[0], tensors[1]};
  EXPECT_EQ(bytes, written(shuffled, {{"k\n", "v\""}}));
}

TEST(SafeTensors, RoundTripsEveryDtypeThroughAFile) {
  const Bytes data = bytes_of("0123456789abcdef");
  std::vector<NamedTensor> tensors;
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::u8, DType::i16,
                           DType::i32, DType::i64, DType::boolean}) {
    tensors.push_back({name_of(type), type, {2, 1, 1, 1, 1}, std::span(data).first(2 * size_of(type))});
  }
  tensors.push_back({"", DType::f32, {3, 0}, {}});
  const std::string path = temp_path("dtypes");
  ASSERT_TRUE(write_safetensors(path, tensors, {{"config", "{}"}}));
  const auto file = SafeTensors::open(path).value();
  EXPECT_EQ(file->names().size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const TensorView view = file->get(tensor.name).value();
    EXPECT_EQ(view.dtype, tensor.dtype);
    EXPECT_EQ(view.shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(view.bytes, tensor.bytes)) << tensor.name;
  }
  EXPECT_EQ(file->metadata(), (Metadata{{"config", "{}"}}));
  EXPECT_TRUE(std::ranges::equal(file->bytes(), written(tensors, {{"config", "{}"}})));
  std::filesystem::remove(path);
}

TEST(SafeTensors, AFileWithoutTensorsIsFine) {
  EXPECT_TRUE(SafeTensors::parse(written({}), "m").value()->names().empty());
  EXPECT_TRUE(SafeTensors::parse(file_of("{}"), "m").value()->metadata().empty());
}

TEST(SafeTensors, WriterRefusesMistakes) {
  const std::vector<float> f = {1};
  const NamedTensor good{"a", DType::f32, {1}, raw(f)};
  EXPECT_THROW(written(std::vector{good, good}), UsageError);
  EXPECT_THROW(written(std::vector<NamedTensor>{{"a", DType::f32, {2}, raw(f)}}), UsageError);
  EXPECT_THROW(written(std::vector<NamedTensor>{{"__metadata__", DType::f32, {1}, raw(f)}}), UsageError);
  EXPECT_THROW(written(std::vector<NamedTensor>{{"\xff", DType::f32, {1}, raw(f)}}), UsageError);
  EXPECT_THROW(written({}, {{"a", "\xc3"}}), UsageError);
  const auto full = [](std::span<const std::byte>) {
    return Result<void>(Error{ErrorCode::io, "disk full"});
  };
  EXPECT_EQ(write_safetensors(full, std::vector{good}).error().message, "disk full");
  EXPECT_EQ(write_safetensors(testing::TempDir() + "no/such/folder", std::vector{good}).error().code,
            ErrorCode::io);
}

TEST(SafeTensors, ConvertsExactly) {
  const float inf = std::numeric_limits<float>::infinity();
  Bytes odd(1);  // one byte in front: nothing after it is aligned
  const auto append = [&odd](const auto& values) {
    const std::size_t begin = odd.size();
    const auto bytes = raw(values);
    odd.insert(odd.end(), bytes.begin(), bytes.end());
    return std::pair(begin, bytes.size());
  };
  const auto convert = [&odd](DType type, std::pair<std::size_t, std::size_t> at) {
    const auto count = static_cast<std::int64_t>(at.second / size_of(type));
    return to_f32({type, {count}, std::span(odd).subspan(at.first, at.second)}).value();
  };
  const auto f16 = append(std::vector<std::uint16_t>{0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00, 0x8000});
  const auto bf16 = append(std::vector<std::uint16_t>{0x3f80, 0xc049, 0x0001, 0x7f80});
  const auto f32 = append(std::vector<float>{0.1f, -inf, 1e-45f});
  const auto f64 = append(std::vector<double>{0.1, 1 + 0x1p-24, 1 + 0x1.8p-23, -1e-60, std::nan("")});
  EXPECT_EQ(convert(DType::f16, f16), (std::vector<float>{1, -2, 0x1p-24f, 65504, -inf, -0.0f}));
  EXPECT_TRUE(std::signbit(convert(DType::f16, f16).back()));
  EXPECT_EQ(convert(DType::bf16, bf16), (std::vector<float>{1, -3.140625f, 0x1p-133f, inf}));
  EXPECT_EQ(convert(DType::f32, f32), (std::vector<float>{0.1f, -inf, 1e-45f}));
  const auto rounded = convert(DType::f64, f64);
  EXPECT_EQ(rounded[0], 0.1f);
  EXPECT_EQ(rounded[1], 1.0f);             // tie to even
  EXPECT_EQ(rounded[2], 1.0f + 0x1p-22f);  // tie to even, upwards
  EXPECT_TRUE(rounded[3] == 0 && std::signbit(rounded[3]));
  EXPECT_TRUE(std::isnan(rounded[4]));
}

struct Lie {
  std::string header, data, message;
  ErrorCode code = ErrorCode::format;
};

TEST(SafeTensors, RefusesHeadersThatLie) {
  const Lie lies[] = {
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234567", "has only 7 bytes of data"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "123456789", "end at byte 8 of 9 bytes"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "12345678", "begin is after end"},
      {R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678", "f32 [3] takes 12 bytes"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12", "expected begin 0"},
      {R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"v":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       "123", "expected begin 2, without gap or overlap"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"v":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       "123", "expected begin 1"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       "1", "expected begin 1"},
      {R"({"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "", "can be counted"},
      {R"({"w":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", "",
       "can be counted"},
      {R"({"w":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", "", "can be counted"},
      {R"({"w":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})", "",
       "9223372036854775808"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]}})", "1",
       "has only 1 bytes"},
      {R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "1",
       "expected whole numbers >= 0 in shape, got -1"},
      {R"({"w":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", "1",
       "got the number \"1.0\" (tensor \"w\")"},
      {R"({"w":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", "1", "got a string"},
      {R"({"w":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "1", "got an array"},
      {R"({"w":{"dtype":"U8","shape":{"a":1},"data_offsets":[0,1]}})", "1",
       "the header key \"shape\" cannot have an object"},
      {R"({"w":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", "1",
       "the header key \"shape\" cannot have a number"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "1", "not a pair"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", "1", "not a pair"},
      {R"({"w":{"dtype":"U8","shape":[1]}})", "1", "lacks dtype, shape or data_offsets"},
      {R"({"w":{}})", "", "lacks dtype, shape or data_offsets"},
      {R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1", "\"dtype\" twice"},
      {R"({"w":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "1", "\"shape\" twice"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1]}})", "1",
       "\"data_offsets\" twice"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       "", "\"w\" twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "\"__metadata__\" twice"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "", "\"a\" twice"},
      {R"({"__metadata__":{"a":1}})", "", "__metadata__ \"a\": expected a string, got a number"},
      {R"({"__metadata__":{"a":{}}})", "", "__metadata__ \"a\": expected a string, got an object"},
      {R"({"__metadata__":null})", "", "null"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":true}})", "1",
       "\"extra\" cannot have a boolean"},
      {R"({"w":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "1",
       "tensor \"w\" has dtype \"F8_E4M3\", supported are F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL",
       ErrorCode::unsupported},
      {R"({"w":{"dtype":"U8","shape":[1,1,1,1,1,1],"data_offsets":[0,1]}})", "1", "more than 5 axes",
       ErrorCode::unsupported},
      {R"({"w":)", "", "not valid JSON at byte 13"},
      {R"({"w":{"dtype":"U8","shape":[1e999],"data_offsets":[0,1]}})", "1", "not valid JSON at byte"},
      {R"({"w" 1})", "", "not valid JSON at byte 13"},
      {R"({} {})", "", "not valid JSON"},
      {"{\"\xff\":{}}", "", "not valid JSON"},
      {" {}", "", "expected '{' at byte 8"},
      {"", "", "expected '{' at byte 8"},
      {"[]", "", "expected '{' at byte 8"},
  };
  for (const Lie& lie : lies) {
    const Error error = error_of(file_of(lie.header, lie.data));
    EXPECT_NE(error.message.find(lie.message), std::string::npos) << lie.header << " gave: " << error.message;
    EXPECT_TRUE(error.message.starts_with("m: ")) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
    EXPECT_EQ(error.code, lie.code) << lie.header;
  }
}

TEST(SafeTensors, RefusesHostileLengthsAndNesting) {
  for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{100'000'001}, ~std::uint64_t{0}}) {
    Bytes bytes = file_of("{}");
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_NE(error_of(bytes).message.find("a header of " + std::to_string(length)), std::string::npos);
  }
  std::string objects, arrays = R"({"w":{"dtype":"U8","shape":)";
  for (int i = 0; i < 300'000; ++i) {
    objects += R"({"a":)";
    arrays += '[';
  }
  EXPECT_EQ(error_of(file_of(objects)).code, ErrorCode::format);
  EXPECT_EQ(error_of(file_of(arrays)).code, ErrorCode::format);
}

TEST(SafeTensors, SurvivesEveryTruncationAndEveryFlippedByte) {
  const std::vector<float> f = {1, 2, 3};
  const std::vector<std::uint8_t> u = {4, 5};
  const Bytes good =
      written(std::vector<NamedTensor>{{"w", DType::f32, {3}, raw(f)}, {"u", DType::u8, {2, 1}, raw(u)}},
              {{"k", "v"}});
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(error_of(cut).code, ErrorCode::format) << size;
  }
  int accepted = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int mask : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(mask);
      const auto parsed = SafeTensors::parse(bad, "m");
      if (!parsed) continue;
      ++accepted;  // the flip must be visible in what was read
      std::vector<NamedTensor> tensors;
      for (const std::string& name : (*parsed)->names()) {
        const TensorView view = (*parsed)->get(name).value();
        EXPECT_EQ(view.bytes.size(), static_cast<std::size_t>(view.shape.size()) * size_of(view.dtype));
        tensors.push_back({name, view.dtype, view.shape, view.bytes});
      }
      const bool padding = good[i] == std::byte{' '};
      EXPECT_TRUE(padding || written(tensors, (*parsed)->metadata()) != good) << "byte " << i;
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(SafeTensors, ReadsAPublishedLayout) {
  const std::string path = std::string(TESSERA_SHARED_DIR) + "/fixtures/mimi/hf.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no fixture " << path;
  const auto file = SafeTensors::open(path).value();
  EXPECT_EQ(file->names().size(), 134u);
  EXPECT_EQ(file->names().front(), "decoder.layers.0.conv.bias");
  EXPECT_EQ(file->metadata("format"), "pt");
  const auto weight = file->read_f32("encoder.layers.0.conv.weight", {8, 1, 7}).value();
  EXPECT_EQ(weight[0], 0.44641774892807007f);
  EXPECT_EQ(weight[1], -2.827185869216919f);

  std::vector<NamedTensor> tensors;
  for (const std::string& name : file->names()) {
    const TensorView view = file->get(name).value();
    tensors.push_back({name, view.dtype, view.shape, view.bytes});
  }
  const Bytes again = written(tensors, file->metadata());
  const auto reread = SafeTensors::parse(again, "again").value();
  for (const std::string& name : file->names()) {
    EXPECT_TRUE(std::ranges::equal(reread->get(name).value().bytes, file->get(name).value().bytes)) << name;
  }
}

}  // namespace
}  // namespace tessera
