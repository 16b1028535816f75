// Token files are small beside their sound: they are read whole, decoded block by block.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apps/audio_decoder.h"
#include "apps/codec_source.h"
#include "apps/decoding.h"
#include "apps/progress.h"

namespace tessera::app {
namespace {

// The tokens as the options read them, with the codec's facts as what is expected. Errors: those of
// read_tokens, usage.
Result<Tokens> read_input(const DecodeOptions& options, TokenFormat format, const CodecInfo& info) {
  const auto wanted = checked_codebooks(info, options.codebooks);
  if (!wanted) return wanted.error();
  const bool raw = format == TokenFormat::raw;
  const int most = raw ? *wanted : info.codebooks;
  auto tokens = read_tokens(
      options.input, {.family = info.family,
                      .sample_rate_hz = info.sample_rate_hz,
                      .frame_rate_hz = info.frame_rate_hz(),
                      .channels = raw ? options.channels : 0,
                      .codebooks = most,
                      .codebook_sizes = {info.codebook_sizes.begin(), info.codebook_sizes.begin() + most}});
  if (tokens && options.codebooks > tokens->layout.codebooks) {
    return Error{ErrorCode::usage, options.input + ": expected 1 to " +
                                       std::to_string(tokens->layout.codebooks) + " codebooks, got " +
                                       std::to_string(options.codebooks)};
  }
  return tokens;
}

}  // namespace

Result<Decoded> decode_tokens(const DecodeOptions& options, TokenFormat format,
                              const std::shared_ptr<const Codec>& codec, Session& session) {
  const CodecInfo& info = codec->info();
  const auto tokens = read_input(options, format, info);
  if (!tokens) return tokens.error();
  const TokenLayout& layout = tokens->layout;
  Decoded done;
  done.channels = layout.channels;
  done.codebooks = options.codebooks > 0 ? options.codebooks : layout.codebooks;
  auto writer = create_output(options, info, layout.channels, session.interrupt);
  if (!writer) return writer.error();

  Progress progress("decoding", session.report.progress());
  const double total_s = static_cast<double>(tokens->frames) / info.frame_rate_hz();
  const StreamOptions stream = stream_options(info, 0, options.codec.threads);
  AudioDecoder decoder(codec, layout.channels, stream, *writer);
  std::vector<std::int32_t> block;  // [frames, channels, codebooks]
  for (std::int64_t first = 0; first < tokens->frames; first += stream.max_frames_per_step) {
    const std::int64_t last = std::min(tokens->frames, first + stream.max_frames_per_step);
    block.clear();
    for (std::int64_t i = first; i < last; ++i) {
      const auto frame = tokens->frame(i);
      for (int c = 0; c < layout.channels; ++c) {
        const auto from = frame.begin() + static_cast<std::ptrdiff_t>(c) * layout.codebooks;
        block.insert(block.end(), from, from + done.codebooks);
      }
    }
    if (auto pushed = decoder.push(block, done.codebooks); !pushed) return pushed.error();
    progress.update(static_cast<double>(decoder.samples()) / info.sample_rate_hz, total_s);
  }
  const auto length = decoder.finish(std::nullopt);
  if (!length) return length.error();
  done.samples = *length;
  done.wall_s = progress.elapsed_s();
  done.clipped = writer->clipped();
  if (auto finished = writer->finish(); !finished) return finished.error();
  return done;
}

}  // namespace tessera::app
