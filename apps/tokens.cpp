// tessera tokens IN OUT.npy: the tokens of a recording, or those that a .tsr file holds, for other programs.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/audio_encoder.h"
#include "apps/codec_source.h"
#include "apps/commands.h"
#include "apps/file_kind.h"
#include "codec/token_file.h"
#include "codec/tsr_reader.h"

namespace tessera::app {
namespace {

struct Extracted {
  std::int64_t frames = 0;
  int channels = 0, codebooks = 0;
  std::string source;  // "encoded" or "read"
  bool damaged = false;
};

TokenLayout layout_of(const TsrHeader& header, int codebooks) {
  return {.family = header.codec_id,
          .sample_rate_hz = header.sample_rate_hz,
          .frame_rate_hz = header.frame_rate_hz(),
          .channels = header.channels,
          .codebooks = codebooks,
          .codebook_sizes = {header.codebook_sizes.begin(), header.codebook_sizes.begin() + codebooks}};
}

Result<TokenWriter> create_output(const TokensOptions& options, const TsrHeader& header, int codebooks,
                                  Session& session) {
  session.interrupt.guard(options.output);
  return TokenWriter::create(options.output, layout_of(header, codebooks));
}

// Encodes. The header only serves to describe the tokens.
Result<Extracted> from_audio(const TokensOptions& options, Session& session) {
  auto codec = load_codec(options.codec, CodecParts::encoder);
  if (!codec) return codec.error();
  const CodecInfo& info = (*codec)->info();
  const auto codebooks = checked_codebooks(info, options.codebooks);
  if (!codebooks) return codebooks.error();
  auto reader = open_audio(options.input, info, options.mono);
  if (!reader) return reader.error();
  const TsrHeader header = tsr_header(info, *codebooks, reader->channels(), EntropyCoder::packed);
  auto writer = create_output(options, header, *codebooks, session);
  if (!writer) return writer.error();
  const auto done =
      encode_audio(*reader, *codec, stream_options(info, *codebooks, options.codec.threads), session.report,
                   [&](std::span<const std::int32_t> frame) { return writer->push(frame); });
  if (!done) return done.error();
  if (auto finished = writer->finish(); !finished) return finished.error();
  return Extracted{done->frames, reader->channels(), *codebooks, "encoded", done->damaged};
}

// Copies the tokens out of the container; no weights are needed. What is lost has no tokens: damage is an
// error here.
Result<Extracted> from_tsr(const TokensOptions& options, Session& session) {
  if (options.mono != ChannelMode::keep) {
    return Error{ErrorCode::usage, "--mono: the channels of a .tsr file are coded already"};
  }
  auto source = file_source(options.input);
  if (!source) return source.error();
  auto reader = TsrReader::open(std::move(*source));
  if (!reader) return Error{reader.error().code, options.input + ": " + reader.error().message};
  const TsrHeader& header = reader->header();
  if (!options.codec.model.empty()) {
    const auto codec = load_codec(options.codec, CodecParts::none);
    if (!codec) return codec.error();
    if (auto belongs = check_belongs(header, options.input, (*codec)->info()); !belongs)
      return belongs.error();
  }
  const int codebooks = options.codebooks > 0 ? options.codebooks : header.codebooks();
  if (codebooks > header.codebooks()) {
    return Error{ErrorCode::usage, options.input + ": expected 1 to " + std::to_string(header.codebooks()) +
                                       " codebooks, got " + std::to_string(codebooks)};
  }
  auto writer = create_output(options, header, codebooks, session);
  if (!writer) return writer.error();
  Extracted done{0, header.channels, codebooks, "read", false};
  for (bool more = true; more;) {
    for (;;) {
      const auto next = reader->next(codebooks);
      if (!next) return next.error();
      if (!*next) break;
      const TsrSegment& segment = **next;
      if (segment.lost && segment.frames > 0) {
        return Error{ErrorCode::damaged, options.input + ": " + segment.reason +
                                             "; a token file cannot have gaps (decode conceals them)"};
      }
      if (segment.lost) {
        session.report.warning(options.input + ": " + segment.reason);
        done.damaged = true;
        continue;
      }
      const auto width =
          static_cast<std::size_t>(header.channels) * static_cast<std::size_t>(segment.codebooks);
      for (std::size_t at = 0; at < segment.tokens.size(); at += width, ++done.frames) {
        if (auto pushed = writer->push(std::span(segment.tokens).subspan(at, width)); !pushed)
          return pushed.error();
      }
    }
    const auto another = reader->next_stream();
    if (!another) return another.error();
    more = *another;
  }
  if (auto finished = writer->finish(); !finished) return finished.error();
  return done;
}

}  // namespace

Result<ExitCode> run(const TokensOptions& options, Session& session) {
  if (auto distinct = check_not_same(options.input, options.output); !distinct) return distinct.error();
  if (const auto format = token_format_of(options.output); !format) return format.error();
  const auto done = is_tsr_file(options.input) ? from_tsr(options, session) : from_audio(options, session);
  if (!done) return done.error();
  session.report.summary(Json{{"input", options.input},
                              {"output", options.output},
                              {"frames", done->frames},
                              {"channels", done->channels},
                              {"codebooks", done->codebooks},
                              {"source", done->source},
                              {"damaged", done->damaged}},
                         options.output + ": " + std::to_string(done->frames) + " frames, " +
                             std::to_string(done->channels) +
                             (done->channels == 1 ? " channel, " : " channels, ") +
                             std::to_string(done->codebooks) + " codebooks, " + done->source);
  return done->damaged ? ExitCode::damaged : ExitCode::ok;
}

}  // namespace tessera::app
