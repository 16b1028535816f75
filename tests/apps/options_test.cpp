// The command line as values, and one clear reason for each way to get it wrong.
#include "apps/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace tessera::app {
namespace {

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tessera");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

std::string reason(const std::vector<const char*>& arguments) {
  const CommandLine line = parse(arguments);
  if (line.command) return "";
  EXPECT_EQ(line.command.error().code, ErrorCode::usage);
  return line.command.error().message;
}

TEST(Options, Encode) {
  const CommandLine line =
      parse({"encode", "in.wav", "-", "--kbps", "4.5", "--mono", "left", "--coder", "pack", "--threads", "3",
             "-m", "w.safetensors", "--precision", "int8", "-q"});
  ASSERT_TRUE(line.command) << line.command.error().message;
  EXPECT_EQ(line.name, "encode");
  const auto& options = std::get<EncodeOptions>(*line.command);
  EXPECT_EQ(options.input, "in.wav");
  EXPECT_EQ(options.output, "-");
  EXPECT_EQ(options.kbps, 4.5);
  EXPECT_EQ(options.mono, ChannelMode::left);
  EXPECT_EQ(options.coder, EntropyCoder::packed);
  EXPECT_EQ(options.codec.threads, 3);
  EXPECT_EQ(options.codec.model, "w.safetensors");
  EXPECT_EQ(options.codec.precision, WeightType::i8);
  EXPECT_TRUE(options.report.quiet);
  EXPECT_FALSE(options.report.json);
}

TEST(Options, Defaults) {
  const auto encode = std::get<EncodeOptions>(*parse({"encode", "-", "out.tsr"}).command);
  EXPECT_EQ(encode.input, "-");
  EXPECT_EQ(encode.codebooks, 0);
  EXPECT_FALSE(encode.kbps);
  EXPECT_EQ(encode.mono, ChannelMode::keep);
  EXPECT_EQ(encode.coder, EntropyCoder::adaptive);
  EXPECT_EQ(encode.codec.threads, 0);
  EXPECT_EQ(encode.codec.precision, WeightType::f32);
  const auto decode = std::get<DecodeOptions>(*parse({"decode", "in.tsr", "out.wav"}).command);
  EXPECT_EQ(decode.bits, SampleFormat::pcm16);
  EXPECT_EQ(decode.format, AudioFileType::by_name);
}

TEST(Options, HelpAndVersion) {
  EXPECT_NE(std::get<TextAnswer>(*parse({"--help"}).command).text.find("encode"), std::string::npos);
  EXPECT_NE(std::get<TextAnswer>(*parse({"encode", "-h"}).command).text.find("Examples"), std::string::npos);
  EXPECT_TRUE(std::holds_alternative<VersionOptions>(*parse({"--version"}).command));
}

TEST(Options, EachMistakeHasItsReason) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> cases = {
      {{}, "expected a command, one of encode, decode"},
      {{"encod", "a", "b"}, "unknown command encod"},
      {{"encode"}, "IN is required"},
      {{"encode", "a.wav"}, "OUT is required"},
      {{"encode", "a.wav", "b.tsr", "c"}, "not expected: c"},
      {{"encode", "a.wav", "b.tsr", "--fast"}, "not expected: --fast"},
      {{"encode", "a.wav", "b.tsr", "--mono", "both"}, "--mono: expected mix, left or right, got both"},
      {{"encode", "a.wav", "b.tsr", "--coder", "zip"}, "--coder: expected pack or adaptive, got zip"},
      {{"encode", "a.wav", "b.tsr", "--codebooks", "0"}, "--codebooks: expected a whole number from 1"},
      {{"encode", "a.wav", "b.tsr", "--codebooks", "four"}, "--codebooks: expected a whole number from 1"},
      {{"encode", "a.wav", "b.tsr", "--threads", "-1"}, "--threads: expected a whole number from 0"},
      {{"encode", "a.wav", "b.tsr", "--kbps", "-1"}, "--kbps: expected a rate above 0"},
      {{"encode", "a.wav", "b.tsr", "--kbps", "nan"}, "--kbps: expected a rate above 0"},
      {{"encode", "a.wav", "b.tsr", "--kbps", "6", "--codebooks", "2"}, "excludes"},
      {{"decode", "a.tsr", "b.wav", "--bits", "12"}, "--bits: expected 16, 24 or float, got 12"},
  };
  for (const auto& [arguments, expected] : cases) {
    const std::string got = reason(arguments);
    EXPECT_NE(got.find(expected), std::string::npos) << got << "\nexpected: " << expected;
    EXPECT_EQ(got.find('\n'), std::string::npos) << got;
  }
}

}  // namespace
}  // namespace tessera::app
