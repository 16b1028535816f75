// Token files: every format against text and bytes laid out by hand, round trips for one and two channels,
// damage, and tokens that no model has.
#include "codec/token_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/npy.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;

constexpr TokenFormat kFormats[] = {TokenFormat::npy, TokenFormat::jsonl, TokenFormat::raw};

TokenLayout layout_of(int channels, int codebooks) {
  return {"mimi",   24000,     12.5,
          channels, codebooks, std::vector<int>(static_cast<std::size_t>(codebooks), 100)};
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ByteSink into(Bytes& out) {
  return [&out](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return Result<void>();
  };
}

/// Frames of tokens 0, 1, 2, ... modulo 100.
Bytes written(TokenFormat format, const TokenLayout& layout, int frames) {
  Bytes out;
  TokenWriter writer(into(out), format, layout);
  std::int32_t next = 0;
  for (int f = 0; f < frames; ++f) {
    std::vector<std::int32_t> frame(static_cast<std::size_t>(layout.channels * layout.codebooks));
    for (auto& token : frame) token = next++ % 100;
    EXPECT_TRUE(writer.push(frame));
  }
  EXPECT_TRUE(writer.finish());
  return out;
}

Error error_of(const Bytes& bytes, TokenFormat format, const TokenLayout& expected) {
  const auto parsed = parse_tokens(bytes, format, expected, "t");
  return parsed ? Error{ErrorCode::io, "no error"} : parsed.error();
}

TEST(TokenFile, LooksLikeTheDocumentedFormats) {
  TokenLayout one = layout_of(1, 2);
  EXPECT_EQ(text_of(written(TokenFormat::jsonl, one, 2)),
            "{\"family\":\"mimi\",\"sample_rate\":24000,\"frame_rate\":12.5,\"codebooks\":2,"
            "\"codebook_sizes\":[100,100],\"channels\":1}\n"
            "{\"frame\": 0, \"tokens\": [0, 1]}\n{\"frame\": 1, \"tokens\": [2, 3]}\n");
  TokenLayout two;
  two.channels = 2;
  two.codebooks = 1;
  EXPECT_EQ(
      text_of(written(TokenFormat::jsonl, two, 1)),
      "{\"codebooks\":1,\"channels\":2}\n"
      "{\"frame\": 0, \"channel\": 0, \"tokens\": [0]}\n{\"frame\": 0, \"channel\": 1, \"tokens\": [1]}\n");
  EXPECT_EQ(text_of(written(TokenFormat::raw, one, 2)), std::string("\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0", 16));
  const auto array = parse_npy(written(TokenFormat::npy, one, 3), "a").value();
  EXPECT_EQ(array.shape(), (Shape{2, 3}));
  const auto* values = array.as<std::int32_t>();
  EXPECT_EQ(std::vector(values, values + 6), (std::vector<std::int32_t>{0, 2, 4, 1, 3, 5}));
  const auto stereo = parse_npy(written(TokenFormat::npy, layout_of(2, 3), 4), "a").value();
  EXPECT_EQ(stereo.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(stereo.as<std::int32_t>()[(1 * 3 + 2) * 4 + 3], 3 * 6 + 1 * 3 + 2);
}

TEST(TokenFile, RoundTripsThroughFiles) {
  for (const char* ending : {".npy", ".jsonl", ".raw"}) {
    for (int channels : {1, 2}) {
      for (int frames : {0, 1, 37}) {
        const TokenLayout layout = layout_of(channels, 3);
        const std::string path = testing::TempDir() + "tessera_tokens" + ending;
        auto writer = TokenWriter::create(path, layout).value();
        std::vector<std::int32_t> all;
        for (int f = 0; f < frames; ++f) {
          std::vector<std::int32_t> frame;
          for (int i = 0; i < 3 * channels; ++i) frame.push_back((f * 31 + i * 7) % 100);
          all.insert(all.end(), frame.begin(), frame.end());
          ASSERT_TRUE(writer.push(frame));
        }
        ASSERT_TRUE(writer.finish());
        const auto tokens = read_tokens(path, layout).value();
        EXPECT_EQ(tokens.frames, frames) << path;
        EXPECT_EQ(tokens.values, all) << path;
        EXPECT_EQ(tokens.layout.codebook_sizes, layout.codebook_sizes);
        if (frames) {
          EXPECT_EQ(tokens.frame(frames - 1).back(), all.back());
        }
        EXPECT_THROW(tokens.frame(frames), UsageError);
        std::filesystem::remove(path);
      }
    }
  }
}

TEST(TokenFile, AcceptsFewerCodebooksAndTellsHowMany) {
  for (const TokenFormat format : {TokenFormat::npy, TokenFormat::jsonl}) {
    const auto tokens =
        parse_tokens(written(format, layout_of(1, 3), 4), format, layout_of(1, 8), "t").value();
    EXPECT_EQ(tokens.layout.codebooks, 3);
    EXPECT_EQ(tokens.layout.codebook_sizes.size(), 3u);
    EXPECT_EQ(tokens.values.size(), 12u);
    const Error more = error_of(written(format, layout_of(1, 3), 4), format, layout_of(1, 2));
    EXPECT_EQ(more.message, "t: expected at most 2 codebooks, got 3");
    EXPECT_EQ(more.code, ErrorCode::mismatch);
    EXPECT_EQ(error_of(written(format, layout_of(2, 3), 4), format, layout_of(1, 3)).code,
              ErrorCode::mismatch);
  }
}

TEST(TokenFile, TakesTheLayoutFromTheFileWhenNothingIsExpected) {
  TokenLayout unknown;
  unknown.channels = 0;
  const auto tokens =
      parse_tokens(written(TokenFormat::jsonl, layout_of(2, 3), 1), TokenFormat::jsonl, unknown, "t");
  const TokenLayout& layout = tokens->layout;
  EXPECT_EQ(layout.family, "mimi");
  EXPECT_EQ(layout.sample_rate_hz, 24000);
  EXPECT_EQ(layout.frame_rate_hz, 12.5);
  EXPECT_EQ(layout.channels, 2);
  EXPECT_EQ(layout.codebooks, 3);
  EXPECT_EQ(layout.codebook_sizes, (std::vector<int>{100, 100, 100}));
  const auto bare = parse_tokens(bytes_of("{\"tokens\":[5,2147483647]}\r\n\n{\"tokens\":[7,8]}"),
                                 TokenFormat::jsonl, unknown, "t");
  EXPECT_EQ(bare->values, (std::vector<std::int32_t>{5, 2147483647, 7, 8}));
  EXPECT_EQ(bare->layout.channels, 1);
  EXPECT_EQ(error_of({}, TokenFormat::raw, unknown).code, ErrorCode::usage);
}

TEST(TokenFile, ReadsEveryIntegerDtypeOfNpy) {
  const auto npy = [](const std::string& descr, const std::string& data) {
    std::string text = "{'descr': '" + descr + "', 'fortran_order': True, 'shape': (1, 2)}";
    return bytes_of(std::string("\x93NUMPY\1\0", 8) + static_cast<char>(text.size()) + std::string(1, '\0') +
                    text + data);
  };
  const std::vector<std::int32_t> expected = {3, 4};
  const std::string zeros(7, '\0');
  const std::pair<const char*, std::string> cases[] = {{"|u1", "\3\4"},
                                                       {"|i1", "\3\4"},
                                                       {"<i2", std::string("\3\0\4\0", 4)},
                                                       {"<i4", std::string("\3\0\0\0\4\0\0\0", 8)},
                                                       {"<i8", "\3" + zeros + "\4" + zeros}};
  for (const auto& [descr, data] : cases) {
    EXPECT_EQ(parse_tokens(npy(descr, data), TokenFormat::npy, {}, "t").value().values, expected) << descr;
  }
  EXPECT_EQ(error_of(npy("<i8", zeros + "\1" + zeros + "\4"), TokenFormat::npy, {}).message,
            "t: frame 0: expected a token from 0 to 2147483647 in codebook 0, got 72057594037927936");
  EXPECT_EQ(error_of(npy("<f4", std::string(8, '\0')), TokenFormat::npy, {}).message,
            "t: expected tokens as integers, got f32");
}

TEST(TokenFile, NamesBadTokensAndWhere) {
  const TokenLayout wide{"", 0, 0, 2, 2, {}};
  TokenLayout narrow = wide;
  narrow.codebook_sizes = {100, 10};  // frame 1, channel 0, codebook 1 is not below 10 any more
  const auto first_bad = [&](TokenFormat format) {
    Bytes out;
    TokenWriter writer(into(out), format, wide);
    EXPECT_TRUE(writer.push(std::vector<std::int32_t>{99, 9, 99, 9}));
    EXPECT_TRUE(writer.push(std::vector<std::int32_t>{99, 10, 99, 9}));
    EXPECT_TRUE(writer.finish());
    return error_of(out, format, narrow).message;
  };
  const std::string wrong = ": expected a token from 0 to 9 in codebook 1, got 10";
  EXPECT_EQ(first_bad(TokenFormat::npy), "t: frame 1" + wrong);
  EXPECT_EQ(first_bad(TokenFormat::jsonl), "t, line 4" + wrong);
  EXPECT_EQ(first_bad(TokenFormat::raw), "t: byte 20" + wrong);
  EXPECT_EQ(error_of(bytes_of("\xff\xff\xff\xff"), TokenFormat::raw, {"", 0, 0, 1, 1, {}}).message,
            "t: byte 0: expected a token from 0 to 2147483647 in codebook 0, got -1");
  EXPECT_EQ(error_of(bytes_of("123456"), TokenFormat::raw, {"", 0, 0, 1, 1, {}}).message,
            "t: expected whole frames of 4 bytes, got 2 bytes after the last one, in a file of 6");
}

TEST(TokenFile, NamesBadJsonLines) {
  const auto npy = [](const Shape& shape) {
    Bytes out;
    const std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
    EXPECT_TRUE(write_npy(into(out), shape, values));
    return out;
  };
  EXPECT_NE(error_of(npy({4}), TokenFormat::npy, {}).message.find("got [4]"), std::string::npos);
  EXPECT_NE(error_of(npy({1, 1, 1, 4}), TokenFormat::npy, {}).message.find("got [1, 1, 1, 4]"),
            std::string::npos);
  EXPECT_NE(error_of(npy({16385, 1}), TokenFormat::npy, {}).message.find("1 to 16384 tokens"),
            std::string::npos);
  EXPECT_NE(error_of(npy({0, 5}), TokenFormat::npy, {}).message.find("0 codebooks"), std::string::npos);

  const std::string good = "{\"frame\": 0, \"tokens\": [1, 2]}\n";
  const std::string nested(100'000, '[');
  std::string closed = nested;
  closed.append(nested.size(), ']');
  const std::pair<std::string, std::string> cases[] = {
      {"", "t: the file has no tokens and no header"},
      {"{}", "t: the file has no tokens and no header"},
      {"nonsense", "t, line 1: not valid JSON at byte 2"},
      {"[1]", "t, line 1: expected an object"},
      {good + "{\"frame\": 1, \"tokens\": [1]}", "t, line 2: expected 2 tokens, got 1"},
      {good + "{\"frame\": 1, \"tokens\": [1, 2, 3]}", "t, line 2: expected 2 tokens, got 3"},
      {good + "\n{\"frame\": 2, \"tokens\": [1, 2]}", "t, line 3: expected frame 1, got \"2\""},
      {good + "{\"frame\": [], \"tokens\": [1, 2]}", "t, line 2: expected frame 1, got array"},
      {good + "{\"frame\": 1}", "t, line 2: expected \"tokens\""},
      {good + "{\"tokens\": [1, 2.0]}", "t, line 2: expected whole numbers as tokens, in codebook 1"},
      {good + "{\"tokens\": [\"1\", 2]}", "t, line 2: expected whole numbers as tokens, in codebook 0"},
      {good + "{\"tokens\": [1, 18446744073709551615]}", "t, line 2: expected whole numbers"},
      {good + "{\"tokens\": [-1, 2]}", "t, line 2: expected a token from 0 to 99 in codebook 0, got -1"},
      {good + "{\"tokens\": [1, 100]}", "t, line 2: expected a token from 0 to 99 in codebook 1, got 100"},
      {good + "{\"channel\": 1, \"tokens\": [1, 2]}", "t, line 2: expected channel 0 of frame 1"},
      {good + "{\"tokens\": 5}", "t, line 2: expected tokens to be a list"},
      {"{\"tokens\": []}", "t: expected 1 to 16384 tokens per frame"},
      {good + "{\"tokens\": " + nested, "t, line 2: not valid JSON"},
      {"{\"family\": " + closed + "}", "t, line 1: family: expected a string, got array"},
      {"{\"tokens\": " + closed + "}", "t, line 1: expected"},
      {std::string(300'000, '['), "t, line 1: longer than"},
      {"{\"family\": \"dac\"}", "t, line 1: family: expected \"mimi\", got"},
      {"{\"family\": 7}", "t, line 1: family: expected a string, got \"7\""},
      {"{\"sample_rate\": 16000}", "t, line 1: sample_rate: expected 24000, got \"16000\""},
      {"{\"sample_rate\": \"24000\"}", "t, line 1: sample_rate: expected 24000"},
      {"{\"frame_rate\": 25}", "t, line 1: frame_rate: expected 12.5, got \"25\""},
      {"{\"frame_rate\": -1}", "t, line 1: frame_rate: expected a number > 0"},
      {"{\"frame_rate\": 1e999}", "t, line 1: a number that no double can hold"},
      {"{\"frame_rate\": null}", "t, line 1: frame_rate: expected a number"},
      {"{\"channels\": 2}", "t, line 1: channels: expected 1, got \"2\""},
      {"{\"codebooks\": 0}", "t, line 1: codebooks: expected a whole number > 0"},
      {"{\"codebooks\": 3}", "t: expected at most 2 codebooks, got 3"},
      {"{\"codebook_sizes\": [100, 99]}", "t, line 1: codebook_sizes: expected 100 for codebook 1"},
      {"{\"codebook_sizes\": [0]}", "t, line 1: codebook_sizes: expected sizes > 0"},
      {"{\"codebook_sizes\": 3}", "t, line 1: codebook_sizes: expected a list"},
      {"{\"codebooks\": 2, \"codebook_sizes\": [100]}", "t, line 1: codebook_sizes: expected 2 sizes"},
  };
  for (const auto& [text, message] : cases) {
    const Error error = error_of(bytes_of(text), TokenFormat::jsonl, layout_of(1, 2));
    EXPECT_TRUE(error.message.starts_with(message)) << text.substr(0, 80) << " gave: " << error.message;
  }
  EXPECT_EQ(error_of(bytes_of("{\"channels\":2}\n{\"channel\":0,\"tokens\":[1]}\n"), TokenFormat::jsonl,
                     {"", 0, 0, 0, 0, {}})
                .message,
            "t: the last frame has only 1 of 2 channels");
  EXPECT_EQ(
      error_of(bytes_of("{\"channels\":2}\n{\"tokens\":[1]}\n"), TokenFormat::jsonl, {"", 0, 0, 2, 0, {}})
          .message,
      "t, line 2: expected channel 0 of frame 0");
}

TEST(TokenFile, SurvivesEveryTruncationAndEveryFlippedByte) {
  const TokenLayout layout = layout_of(2, 2);
  for (const TokenFormat format : kFormats) {
    const Bytes good = written(format, layout, 3);
    const auto same = parse_tokens(good, format, layout, "t").value();
    for (std::size_t size = 0; size < good.size(); ++size) {
      const Bytes cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      const auto tokens = parse_tokens(cut, format, layout, "t");
      if (tokens && size + 1 < good.size()) {  // the very last byte of .jsonl is an end of line
        EXPECT_LT(tokens->frames, same.frames) << size;
      }
    }
    for (std::size_t i = 0; i < good.size(); ++i) {
      for (int mask : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        Bytes bad = good;
        bad[i] ^= static_cast<std::byte>(mask);
        const auto tokens = parse_tokens(bad, format, layout, "t");
        if (!tokens) continue;
        EXPECT_TRUE(
            std::ranges::all_of(tokens->values, [](auto token) { return token >= 0 && token < 100; }));
        EXPECT_EQ(static_cast<std::int64_t>(tokens->values.size()),
                  tokens->frames * tokens->layout.channels * tokens->layout.codebooks);
      }
    }
  }
}

TEST(TokenFile, RefusesUnknownEndings) {
  EXPECT_EQ(token_format_of("a/b.NPY").error().message,
            "a/b.NPY: expected a token file ending in .npy, .jsonl or .raw");
  EXPECT_EQ(TokenWriter::create("tokens", layout_of(1, 1)).error().code, ErrorCode::usage);
  EXPECT_EQ(read_tokens("tokens.txt", {}).error().code, ErrorCode::usage);
  EXPECT_EQ(read_tokens(testing::TempDir() + "missing.raw", layout_of(1, 1)).error().code, ErrorCode::io);
}

TEST(TokenFile, WriterRefusesMistakesAndPassesOnErrors) {
  Bytes out;
  EXPECT_THROW(TokenWriter(into(out), TokenFormat::raw, TokenLayout{}), UsageError);
  EXPECT_THROW(TokenWriter(into(out), TokenFormat::raw, TokenLayout{"", 0, 0, 1, 2, {5}}), UsageError);
  EXPECT_THROW(TokenWriter(into(out), TokenFormat::raw, TokenLayout{"", 0, 0, 1, 20000, {}}), UsageError);
  EXPECT_THROW(TokenWriter(into(out), TokenFormat::jsonl, TokenLayout{"\xff", 0, 0, 1, 1, {}}), UsageError);
  TokenWriter writer(into(out), TokenFormat::raw, layout_of(1, 2));
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>{1}), UsageError);
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>{1, 100}), UsageError);
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>{-1, 1}), UsageError);
  EXPECT_TRUE(out.empty());
  ASSERT_TRUE(writer.finish());
  EXPECT_THROW((void)writer.finish(), UsageError);
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>{1, 1}), UsageError);
  for (const TokenFormat format : kFormats) {
    TokenWriter full(
        [](auto) {
          return Result<void>(Error{ErrorCode::io, "disk full"});
        },
        format, layout_of(1, 1));
    const auto pushed = full.push(std::vector<std::int32_t>{1});
    EXPECT_EQ(bool(pushed), format == TokenFormat::npy);
    if (format == TokenFormat::npy) {
      EXPECT_EQ(full.finish().error().message, "disk full");
    }
  }
}

TEST(TokenFile, ReadsReferenceTokens) {
  const std::string path = std::string(TESSERA_SHARED_DIR) + "/fixtures/mimi/speech_a.tokens.npy";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no fixture " << path;
  const auto tokens = read_tokens(path, {"mimi", 24000, 12.5, 1, 8, std::vector<int>(8, 256)}).value();
  EXPECT_EQ(tokens.frames, 30);
  EXPECT_EQ(tokens.frame(0)[0], 48);
  EXPECT_EQ(tokens.frame(1)[0], 145);
  EXPECT_EQ(tokens.frame(3)[0], 169);
}

}  // namespace
}  // namespace tessera
