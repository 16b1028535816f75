// tessera encode IN OUT.tsr: sound to a file of tokens.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "apps/audio_encoder.h"
#include "apps/codec_source.h"
#include "apps/commands.h"
#include "apps/rate.h"
#include "codec/tsr_writer.h"
#include "core/atomic_file.h"

namespace tessera::app {
namespace {

// A name with another ending is most likely a slip, and would replace a recording. Pipes and devices may be
// called anything.
Result<void> check_ending(const std::string& output) {
  std::error_code error;
  const auto status = std::filesystem::status(output, error);
  const bool special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (output == "-" || output.ends_with(".tsr") || special) return {};
  return Error{ErrorCode::usage, output + ": expected a file ending in .tsr, or - for a pipe"};
}

}  // namespace

Result<ExitCode> run(const EncodeOptions& options, Session& session) {
  Report& report = session.report;
  if (options.report.json && options.output == "-") {
    return Error{ErrorCode::usage, "--json: standard output is already OUT"};
  }
  if (auto distinct = check_not_same(options.input, options.output); !distinct) return distinct.error();
  if (auto checked = check_ending(options.output); !checked) return checked.error();
  auto codec = load_codec(options.codec, CodecParts::encoder);
  if (!codec) return codec.error();
  const CodecInfo& info = (*codec)->info();
  auto codebooks = checked_codebooks(info, options.codebooks);
  if (!codebooks) return codebooks.error();
  auto reader = open_audio(options.input, info, options.mono);
  if (!reader) return reader.error();
  const int channels = reader->channels();
  if (options.kbps) {
    codebooks = codebooks_for_rate(info, *options.kbps, channels, reader->frames());
    if (!codebooks) return codebooks.error();
  }

  session.interrupt.guard(options.output);
  auto file = AtomicFile::create(options.output);
  if (!file) return file.error();
  auto writer = TsrWriter::open([&](std::span<const std::byte> bytes) { return file->write(bytes); },
                                tsr_header(info, *codebooks, channels, options.coder));
  if (!writer) return writer.error();
  const auto done =
      encode_audio(*reader, *codec, stream_options(info, *codebooks, options.codec.threads), report,
                   [&](std::span<const std::int32_t> frame) { return writer->push(frame); });
  if (!done) return done.error();
  if (auto finished = writer->finish(static_cast<std::uint64_t>(done->samples)); !finished)
    return finished.error();
  if (auto committed = file->commit(); !committed) return committed.error();

  const double kbps =
      true_kbps(writer->bytes(), static_cast<std::uint64_t>(done->samples), info.sample_rate_hz);
  if (options.kbps && kbps > *options.kbps)
    report.note("the file is above --kbps " + fixed(*options.kbps, 3));
  const double factor = done->real_time_factor(info);
  report.summary(Json{{"input", options.input},
                      {"output", options.output},
                      {"seconds", done->seconds(info)},
                      {"samples", done->samples},
                      {"sample_rate_hz", info.sample_rate_hz},
                      {"channels", channels},
                      {"frames", done->frames},
                      {"codebooks", *codebooks},
                      {"bytes", writer->bytes()},
                      {"kbps", kbps},
                      {"real_time_factor", factor},
                      {"model", info.name},
                      {"damaged", done->damaged}},
                 file->name() + ": " + fixed(done->seconds(info), 2) + " s, " + std::to_string(channels) +
                     (channels == 1 ? " channel, " : " channels, ") + std::to_string(*codebooks) +
                     " codebooks, " + std::to_string(writer->bytes()) + " bytes, " + fixed(kbps, 2) +
                     " kbps, " + fixed(factor, 1) + " x real time");
  return done->damaged ? ExitCode::damaged : ExitCode::ok;
}

}  // namespace tessera::app
