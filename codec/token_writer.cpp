// Writing token files; see token_file.h.
#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "codec/token_file.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/npy.h"
#include "core/untrusted.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little, "tokens are written as they lie in memory");

struct TokenWriter::State {
  ByteSink sink;
  TokenFormat format = TokenFormat::npy;
  TokenLayout layout;
  std::optional<AtomicFile> file = {};
  std::int64_t frames = 0;
  bool finished = false;
  std::vector<std::int32_t> kept = {};  // npy: [frames, channels, codebooks]
  std::string header = {};              // jsonl: written before the first frame, then empty
  std::string text = {};                // jsonl: the lines of one frame

  Result<void> write_header() {
    if (header.empty()) return {};
    const std::string line = std::exchange(header, "");
    return sink(std::as_bytes(std::span(line)));
  }
  Result<void> write_npy_array() const;
};

namespace {

void check_layout(const TokenLayout& layout) {
  if (layout.codebooks < 1 || layout.channels < 1 || layout.channels > kMaxTokensPerFrame ||
      layout.codebooks > kMaxTokensPerFrame / layout.channels) {
    fail("TokenWriter", "1 to " + std::to_string(kMaxTokensPerFrame) + " tokens per frame",
         std::to_string(layout.channels) + " channels of " + std::to_string(layout.codebooks) + " codebooks");
  }
  const auto& sizes = layout.codebook_sizes;
  if (!sizes.empty() &&
      (sizes.size() != static_cast<std::size_t>(layout.codebooks) || std::ranges::min(sizes) < 1)) {
    fail("TokenWriter", std::to_string(layout.codebooks) + " codebook sizes > 0, or none",
         std::to_string(sizes.size()) + " sizes");
  }
}

/// One line with what is known of the layout; empty for the other formats.
std::string header_line(TokenFormat format, const TokenLayout& layout) {
  if (format != TokenFormat::jsonl) return "";
  nlohmann::ordered_json header;
  if (!layout.family.empty()) header["family"] = layout.family;
  if (layout.sample_rate_hz > 0) header["sample_rate"] = layout.sample_rate_hz;
  if (layout.frame_rate_hz > 0) header["frame_rate"] = layout.frame_rate_hz;
  header["codebooks"] = layout.codebooks;
  if (!layout.codebook_sizes.empty()) header["codebook_sizes"] = layout.codebook_sizes;
  header["channels"] = layout.channels;
  try {
    return header.dump() + "\n";
  } catch (const nlohmann::json::exception&) {
    fail("TokenWriter", "UTF-8 as family", in_quotes(layout.family));
  }
}

/// Appends one line per channel.
void append_lines(std::string& text, const TokenLayout& layout, std::int64_t frame,
                  std::span<const std::int32_t> tokens) {
  for (int channel = 0; channel < layout.channels; ++channel) {
    text += "{\"frame\": " + std::to_string(frame);
    if (layout.channels > 1) text += ", \"channel\": " + std::to_string(channel);
    text += ", \"tokens\": [";
    for (int codebook = 0; codebook < layout.codebooks; ++codebook) {
      if (codebook) text += ", ";
      text += std::to_string(tokens[static_cast<std::size_t>(channel * layout.codebooks + codebook)]);
    }
    text += "]}\n";
  }
}

}  // namespace

/// Transposes to [codebooks, frames] or [channels, codebooks, frames].
Result<void> TokenWriter::State::write_npy_array() const {
  const std::size_t rows =
      static_cast<std::size_t>(layout.channels) * static_cast<std::size_t>(layout.codebooks);
  std::vector<std::int32_t> transposed;
  transposed.reserve(kept.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = row; i < kept.size(); i += rows) transposed.push_back(kept[i]);
  }
  const Shape shape = layout.channels == 1 ? Shape{layout.codebooks, frames}
                                           : Shape{layout.channels, layout.codebooks, frames};
  return write_npy(sink, shape, transposed);
}

TokenWriter::TokenWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TokenWriter::TokenWriter(TokenWriter&&) noexcept = default;
TokenWriter& TokenWriter::operator=(TokenWriter&&) noexcept = default;
TokenWriter::~TokenWriter() = default;

TokenWriter::TokenWriter(ByteSink sink, TokenFormat format, TokenLayout layout) {
  check_layout(layout);
  std::string header = header_line(format, layout);
  state_ =
      std::make_unique<State>(State{.sink = std::move(sink), .format = format, .layout = std::move(layout)});
  state_->header = std::move(header);
}

Result<TokenWriter> TokenWriter::create(const std::string& path, TokenLayout layout) {
  const auto format = token_format_of(path);
  if (!format) return format.error();
  TokenWriter writer(ByteSink(), *format, std::move(layout));
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  State& state = *writer.state_;
  state.file.emplace(std::move(*file));
  state.sink = [&file = *state.file](std::span<const std::byte> bytes) { return file.write(bytes); };
  return writer;
}

Result<void> TokenWriter::push(std::span<const std::int32_t> frame) {
  State& state = *state_;
  const TokenLayout& layout = state.layout;
  if (state.finished) fail("TokenWriter", "no frame after finish()", "one");
  const std::size_t codebooks = static_cast<std::size_t>(layout.codebooks);
  if (frame.size() != static_cast<std::size_t>(layout.channels) * codebooks) {
    fail("TokenWriter", "[" + std::to_string(layout.channels) + ", " + std::to_string(codebooks) + "] tokens",
         std::to_string(frame.size()));
  }
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const std::size_t codebook = i % codebooks;
    const bool too_large = !layout.codebook_sizes.empty() && frame[i] >= layout.codebook_sizes[codebook];
    if (frame[i] >= 0 && !too_large) continue;
    fail("TokenWriter", "tokens >= 0 and below the size of codebook " + std::to_string(codebook),
         std::to_string(frame[i]));
  }
  const std::int64_t index = state.frames++;
  if (state.format == TokenFormat::npy) {
    state.kept.insert(state.kept.end(), frame.begin(), frame.end());
    return {};
  }
  if (state.format == TokenFormat::raw) return state.sink(std::as_bytes(frame));
  if (auto done = state.write_header(); !done) return done;
  state.text.clear();
  append_lines(state.text, layout, index, frame);
  return state.sink(std::as_bytes(std::span(state.text)));
}

Result<void> TokenWriter::finish() {
  State& state = *state_;
  if (std::exchange(state.finished, true)) fail("TokenWriter", "one finish()", "two");
  if (auto done = state.write_header(); !done) return done;
  if (state.format == TokenFormat::npy) {
    if (auto done = state.write_npy_array(); !done) return done;
  }
  return state.file ? state.file->commit() : Result<void>();
}

}  // namespace tessera
