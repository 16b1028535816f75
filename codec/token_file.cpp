// Reading token files. Three parsers fill one Tokens; what the file says and what the caller expects meet in
// Reader::adopt (shape) and Reader::check (values). Writing is in token_writer.cpp.
#include "codec/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/npy.h"
#include "core/untrusted.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxLineBytes = 256 * 1024;  // more than a frame of kMaxTokensPerFrame tokens takes

/// A whole number in JSON that int64 holds; 1.0 is not one.
std::optional<std::int64_t> integer(const Json& json) {
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>()))
    return std::nullopt;
  if (!json.is_number_integer()) return std::nullopt;
  return json.get<std::int64_t>();
}

/// A JSON value for an error line. Lists and objects only by kind: writing them out recurses as deep as they
/// nest.
std::string shown(const Json& json) {
  return json.is_primitive() ? in_quotes(json.dump()) : std::string(json.type_name());
}

class Reader {
 public:
  Reader(const TokenLayout& expected, const std::string& name) : expected_(expected), name_(name) {
    tokens_.layout = expected;
  }

  Result<Tokens> npy(std::span<const std::byte> bytes);
  Result<Tokens> jsonl(std::string_view text);
  Result<Tokens> raw(std::span<const std::byte> bytes);

 private:
  using Failure = std::optional<Error>;

  Error error(const std::string& text, ErrorCode code = ErrorCode::format) const {
    return {code, name_ + ": " + text};
  }
  Error line_error(const std::string& text, ErrorCode code = ErrorCode::format) const {
    return {code, name_ + ", line " + std::to_string(line_) + ": " + text};
  }
  Failure adopt(std::int64_t channels, std::int64_t codebooks);
  std::string check(std::int64_t token, int codebook) const;
  Failure jsonl_header(const Json& line);
  Failure jsonl_frame(const Json& line);

  const TokenLayout& expected_;
  const std::string& name_;
  Tokens tokens_;
  bool adopted_ = false;
  std::int64_t line_ = 0;   // jsonl: number of the current line, from 1
  std::int64_t parts_ = 0;  // jsonl: lines with tokens so far, one per frame and channel
};

/// Settles the shape of a frame, and so the layout of the result.
Reader::Failure Reader::adopt(std::int64_t channels, std::int64_t codebooks) {
  if (channels < 1 || codebooks < 1 || channels > kMaxTokensPerFrame ||
      codebooks > kMaxTokensPerFrame / channels) {
    return error("expected 1 to " + std::to_string(kMaxTokensPerFrame) + " tokens per frame, got " +
                 std::to_string(channels) + " channels of " + std::to_string(codebooks) + " codebooks");
  }
  if (expected_.channels && channels != expected_.channels) {
    return error(
        "expected " + std::to_string(expected_.channels) + " channels, got " + std::to_string(channels),
        ErrorCode::mismatch);
  }
  if (expected_.codebooks && codebooks > expected_.codebooks) {
    return error("expected at most " + std::to_string(expected_.codebooks) + " codebooks, got " +
                     std::to_string(codebooks),
                 ErrorCode::mismatch);
  }
  auto& sizes = tokens_.layout.codebook_sizes;
  if (!sizes.empty()) sizes.resize(static_cast<std::size_t>(codebooks));  // only ever shortens
  tokens_.layout.channels = static_cast<int>(channels);
  tokens_.layout.codebooks = static_cast<int>(codebooks);
  adopted_ = true;
  return std::nullopt;
}

/// What is wrong with a token, or nothing.
std::string Reader::check(std::int64_t token, int codebook) const {
  const auto& sizes = tokens_.layout.codebook_sizes;
  const std::int64_t size = sizes.empty() ? std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1
                                          : sizes[static_cast<std::size_t>(codebook)];
  if (token >= 0 && token < size) return "";
  return "expected a token from 0 to " + std::to_string(size - 1) + " in codebook " +
         std::to_string(codebook) + ", got " + std::to_string(token);
}

std::int64_t element(const Tensor& array, std::int64_t i) {
  switch (array.dtype()) {
    case DType::u8:
      return array.as<std::uint8_t>()[i];
    case DType::i8:
      return array.as<std::int8_t>()[i];
    case DType::i16:
      return array.as<std::int16_t>()[i];
    case DType::i64:
      return array.as<std::int64_t>()[i];
    default:
      return array.as<std::int32_t>()[i];
  }
}

Result<Tokens> Reader::npy(std::span<const std::byte> bytes) {
  const auto array = parse_npy(bytes, name_);
  if (!array) return array.error();
  if (array->dtype() == DType::f32 || array->dtype() == DType::f64) {
    return error(std::string("expected tokens as integers, got ") + name_of(array->dtype()));
  }
  const Shape& shape = array->shape();
  if (shape.rank() != 2 && shape.rank() != 3) {
    return error("expected [codebooks, frames] or [channels, codebooks, frames], got " + shape.str());
  }
  const std::int64_t channels = shape.rank() == 3 ? shape[0] : 1;
  const std::int64_t codebooks = shape[shape.rank() - 2], frames = shape[shape.rank() - 1];
  if (const auto failure = adopt(channels, codebooks)) return *failure;

  tokens_.frames = frames;
  tokens_.values.resize(static_cast<std::size_t>(shape.size()));
  std::int64_t source = 0;
  for (std::int64_t row = 0; row < channels * codebooks; ++row) {
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      const std::int64_t token = element(*array, source++);
      const std::string wrong = check(token, static_cast<int>(row % codebooks));
      if (!wrong.empty()) return error("frame " + std::to_string(frame) + ": " + wrong);
      tokens_.values[static_cast<std::size_t>(frame * channels * codebooks + row)] =
          static_cast<std::int32_t>(token);
    }
  }
  return std::move(tokens_);
}

Result<Tokens> Reader::raw(std::span<const std::byte> bytes) {
  if (!expected_.codebooks || !expected_.channels) {
    return error("a .raw file does not say how many codebooks and channels it has; name them",
                 ErrorCode::usage);
  }
  if (const auto failure = adopt(expected_.channels, expected_.codebooks)) return *failure;
  const std::size_t per_frame =
      static_cast<std::size_t>(expected_.channels) * static_cast<std::size_t>(expected_.codebooks);
  const std::size_t frame_bytes = per_frame * sizeof(std::int32_t);
  if (bytes.size() % frame_bytes) {
    return error("expected whole frames of " + std::to_string(frame_bytes) + " bytes, got " +
                 std::to_string(bytes.size() % frame_bytes) + " bytes after the last one, in a file of " +
                 std::to_string(bytes.size()));
  }
  tokens_.frames = static_cast<std::int64_t>(bytes.size() / frame_bytes);
  tokens_.values.resize(bytes.size() / sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(tokens_.values.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < tokens_.values.size(); ++i) {
    const std::string wrong = check(tokens_.values[i], static_cast<int>(i % per_frame) % expected_.codebooks);
    if (!wrong.empty()) return error("byte " + std::to_string(i * sizeof(std::int32_t)) + ": " + wrong);
  }
  return std::move(tokens_);
}

/// The first line: what the tokens are. Each known key must agree with what is expected; others are not
/// looked at.
Reader::Failure Reader::jsonl_header(const Json& line) {
  TokenLayout& layout = tokens_.layout;
  const auto wrong = [this, &line](const char* key, const std::string& expected) {
    return line_error(std::string(key) + ": expected " + expected + ", got " + shown(line.at(key)),
                      ErrorCode::mismatch);
  };
  if (line.contains("family")) {
    if (!line["family"].is_string()) return wrong("family", "a string");
    const std::string& family = line["family"].get_ref<const std::string&>();
    if (!layout.family.empty() && family != layout.family) return wrong("family", in_quotes(layout.family));
    layout.family = family;
  }
  const auto whole = [&line](const char* key, std::int64_t known, std::int64_t& value) {
    if (!line.contains(key)) return true;
    const auto number = integer(line[key]);
    value = number.value_or(0);
    return value >= 1 && value <= std::numeric_limits<int>::max() && (!known || value == known);
  };
  std::int64_t rate = layout.sample_rate_hz;
  if (!whole("sample_rate", rate, rate)) {
    return wrong("sample_rate",
                 layout.sample_rate_hz ? std::to_string(layout.sample_rate_hz) : "a whole number > 0");
  }
  layout.sample_rate_hz = static_cast<int>(rate);
  if (line.contains("frame_rate")) {
    if (!line["frame_rate"].is_number()) return wrong("frame_rate", "a number");
    const double frame_rate = line["frame_rate"].get<double>();
    const double known = layout.frame_rate_hz;
    if (!(frame_rate > 0)) return wrong("frame_rate", "a number > 0");
    if (known > 0 && frame_rate != known) return wrong("frame_rate", Json(known).dump());
    layout.frame_rate_hz = frame_rate;
  }
  std::int64_t channels = layout.channels ? layout.channels : 1;
  if (!whole("channels", layout.channels, channels)) {
    return wrong("channels", layout.channels ? std::to_string(layout.channels) : "a whole number > 0");
  }
  layout.channels = static_cast<int>(channels);
  std::int64_t codebooks = 0;
  if (!whole("codebooks", 0, codebooks)) return wrong("codebooks", "a whole number > 0");
  if (line.contains("codebook_sizes")) {
    const Json& list = line["codebook_sizes"];
    if (!list.is_array() || list.size() > static_cast<std::size_t>(kMaxTokensPerFrame) ||
        (codebooks && list.size() != static_cast<std::size_t>(codebooks))) {
      return wrong("codebook_sizes", codebooks ? std::to_string(codebooks) + " sizes" : "a list of sizes");
    }
    std::vector<int> sizes;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::int64_t size = integer(list[k]).value_or(0);
      if (size < 1 || size > std::numeric_limits<std::int32_t>::max())
        return wrong("codebook_sizes", "sizes > 0");
      if (k < layout.codebook_sizes.size() && size != layout.codebook_sizes[k]) {
        return wrong("codebook_sizes",
                     std::to_string(layout.codebook_sizes[k]) + " for codebook " + std::to_string(k));
      }
      sizes.push_back(static_cast<int>(size));
    }
    codebooks = static_cast<std::int64_t>(sizes.size());
    if (layout.codebook_sizes.empty()) layout.codebook_sizes = std::move(sizes);
  }
  return codebooks ? adopt(channels, codebooks) : std::nullopt;
}

/// {"frame": 0, "tokens": [..]}, with "channel" when there are several.
Reader::Failure Reader::jsonl_frame(const Json& line) {
  const Json& list = line["tokens"];
  if (!list.is_array()) return line_error("expected tokens to be a list");
  if (!adopted_) {
    const int channels = tokens_.layout.channels ? tokens_.layout.channels : 1;
    if (auto failure = adopt(channels, static_cast<std::int64_t>(list.size()))) return failure;
  }
  const TokenLayout& layout = tokens_.layout;
  if (list.size() != static_cast<std::size_t>(layout.codebooks)) {
    return line_error("expected " + std::to_string(layout.codebooks) + " tokens, got " +
                      std::to_string(list.size()));
  }
  const std::int64_t frame = parts_ / layout.channels, channel = parts_ % layout.channels;
  if (line.contains("frame") && integer(line["frame"]) != frame) {
    return line_error("expected frame " + std::to_string(frame) + ", got " + shown(line["frame"]));
  }
  if (line.contains("channel") ? integer(line["channel"]) != channel : layout.channels > 1) {
    return line_error("expected channel " + std::to_string(channel) + " of frame " + std::to_string(frame));
  }
  for (int codebook = 0; codebook < layout.codebooks; ++codebook) {
    const auto token = integer(list[static_cast<std::size_t>(codebook)]);
    if (!token)
      return line_error("expected whole numbers as tokens, in codebook " + std::to_string(codebook));
    const std::string wrong = check(*token, codebook);
    if (!wrong.empty()) return line_error(wrong);
    tokens_.values.push_back(static_cast<std::int32_t>(*token));
  }
  ++parts_;
  return std::nullopt;
}

Result<Tokens> Reader::jsonl(std::string_view text) {
  bool first = true;
  while (!text.empty()) {
    ++line_;
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (line.size() > kMaxLineBytes)
      return line_error("longer than " + std::to_string(kMaxLineBytes) + " bytes");
    Json json;
    try {
      json = Json::parse(line);
    } catch (const Json::parse_error& e) {
      return line_error("not valid JSON at byte " + std::to_string(e.byte) + " of the line");
    } catch (const Json::out_of_range&) {
      return line_error("a number that no double can hold");
    }
    if (!json.is_object()) return line_error("expected an object {...}");
    if (!json.contains("tokens") && !first) return line_error("expected \"tokens\"");
    const auto failure = json.contains("tokens") ? jsonl_frame(json) : jsonl_header(json);
    if (failure) return *failure;
    first = false;
  }
  if (!adopted_) return error("the file has no tokens and no header that says how many codebooks");
  const TokenLayout& layout = tokens_.layout;
  if (parts_ % layout.channels) {
    return error("the last frame has only " + std::to_string(parts_ % layout.channels) + " of " +
                 std::to_string(layout.channels) + " channels");
  }
  tokens_.frames = parts_ / layout.channels;
  return std::move(tokens_);
}

}  // namespace

std::span<const std::int32_t> Tokens::frame(std::int64_t index) const {
  if (index < 0 || index >= frames) {
    fail("tokens", "a frame from 0 to " + std::to_string(frames - 1), std::to_string(index));
  }
  const std::size_t count =
      static_cast<std::size_t>(layout.channels) * static_cast<std::size_t>(layout.codebooks);
  return std::span(values).subspan(static_cast<std::size_t>(index) * count, count);
}

Result<TokenFormat> token_format_of(std::string_view path) {
  if (path.ends_with(".npy")) return TokenFormat::npy;
  if (path.ends_with(".jsonl")) return TokenFormat::jsonl;
  if (path.ends_with(".raw")) return TokenFormat::raw;
  return Error{ErrorCode::usage,
               std::string(path) + ": expected a token file ending in .npy, .jsonl or .raw"};
}

Result<Tokens> parse_tokens(std::span<const std::byte> bytes, TokenFormat format, const TokenLayout& expected,
                            const std::string& name) {
  if (expected.channels < 0 || expected.codebooks < 0 ||
      (!expected.codebook_sizes.empty() &&
       expected.codebook_sizes.size() != static_cast<std::size_t>(expected.codebooks))) {
    fail("parse_tokens", "a size for each codebook, or none", std::to_string(expected.codebook_sizes.size()));
  }
  Reader reader(expected, name);
  switch (format) {
    case TokenFormat::npy:
      return reader.npy(bytes);
    case TokenFormat::jsonl:
      return reader.jsonl({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    case TokenFormat::raw:
      return reader.raw(bytes);
  }
  fail("parse_tokens", "a token format", "none");
}

Result<Tokens> read_tokens(const std::string& path, const TokenLayout& expected) {
  const auto format = token_format_of(path);
  if (!format) return format.error();
  std::error_code ignored;
  if (*format == TokenFormat::raw && std::filesystem::file_size(path, ignored) == 0) {
    return parse_tokens({}, *format, expected, path);  // no frames, hence no bytes; cannot be mapped
  }
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  return parse_tokens(file->bytes(), *format, expected, path);
}

}  // namespace tessera
