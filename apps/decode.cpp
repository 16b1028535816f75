// tessera decode IN OUT.wav: a .tsr file or a file of tokens to sound.
#include <nlohmann/json.hpp>
#include <string>

#include "apps/codec_source.h"
#include "apps/commands.h"
#include "apps/decoding.h"

namespace tessera::app {

Result<AudioWriter> create_output(const DecodeOptions& options, const CodecInfo& info, int channels,
                                  Interrupt& interrupt) {
  interrupt.guard(options.output);
  return AudioWriter::create(options.output, {.sample_rate_hz = info.sample_rate_hz,
                                              .channels = channels,
                                              .format = options.bits,
                                              .type = options.format});
}

Result<ExitCode> run(const DecodeOptions& options, Session& session) {
  Report& report = session.report;
  if (options.report.json && options.output == "-") {
    return Error{ErrorCode::usage, "--json: standard output is already OUT"};
  }
  if (auto distinct = check_not_same(options.input, options.output); !distinct) return distinct.error();
  const auto format = token_format_of(options.input);
  if (options.channels != 1 && !(format && *format == TokenFormat::raw)) {
    return Error{ErrorCode::usage, "--channels: only a .raw input does not say how many it has"};
  }
  auto codec = load_codec(options.codec, CodecParts::decoder);
  if (!codec) return codec.error();
  const auto done =
      format ? decode_tokens(options, *format, *codec, session) : decode_tsr(options, *codec, session);
  if (!done) return done.error();

  if (done->clipped > 0)
    report.note(std::to_string(done->clipped) +
                " samples were limited to full scale (--bits float keeps them)");
  const CodecInfo& info = (*codec)->info();
  const double seconds = static_cast<double>(done->samples) / info.sample_rate_hz;
  const double factor = done->wall_s > 0 ? seconds / done->wall_s : 0;
  report.summary(
      Json{{"input", options.input},
           {"output", options.output},
           {"seconds", seconds},
           {"samples", done->samples},
           {"sample_rate_hz", info.sample_rate_hz},
           {"channels", done->channels},
           {"codebooks", done->codebooks},
           {"lost_frames", done->lost_frames},
           {"damaged", done->damaged},
           {"real_time_factor", factor},
           {"model", info.name}},
      (options.output == "-" ? "standard output" : options.output) + ": " + fixed(seconds, 2) + " s, " +
          std::to_string(done->channels) + (done->channels == 1 ? " channel, " : " channels, ") +
          std::to_string(info.sample_rate_hz) + " Hz, " + fixed(factor, 1) + " x real time" +
          (done->lost_frames > 0 ? ", " + std::to_string(done->lost_frames) + " frames concealed" : ""));
  return done->damaged ? ExitCode::damaged : ExitCode::ok;
}

}  // namespace tessera::app
