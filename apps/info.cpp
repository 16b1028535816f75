// tessera info FILE: what a .tsr file, a weights file, a file of tokens or a media file is.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/codec_source.h"
#include "apps/commands.h"
#include "apps/describe.h"
#include "apps/file_kind.h"
#include "codec/media.h"
#include "codec/token_file.h"
#include "codec/tsr_reader.h"
#include "core/hash.h"

namespace tessera::app {
namespace {

// What one pass over the segments finds, all streams of the file together.
struct TsrSummary {
  std::uint64_t streams = 1, segments = 0, frames = 0, samples = 0, lost_frames = 0;
  bool exact = true;  // every stream has its trailer
  std::vector<std::string> problems;
};

Result<TsrSummary> scan(TsrReader& reader) {
  TsrSummary summary;
  const auto at = [&](std::uint64_t frame) {
    return clock_time(static_cast<double>(frame) / reader.header().frame_rate_hz());
  };
  for (bool more = true; more;) {
    for (;;) {
      const auto next = reader.next(0);
      if (!next) return next.error();
      if (!*next) break;
      const TsrSegment& segment = **next;
      if (segment.lost) {
        summary.lost_frames += segment.frames;
        summary.problems.push_back(segment.reason);
        if (segment.frames > 0) {
          summary.problems.back() +=
              "; " + at(segment.first_frame) + " to " + at(segment.first_frame + segment.frames) + " lost";
        }
      } else {
        ++summary.segments;
      }
    }
    summary.frames += reader.frames();
    summary.samples += reader.best_total_samples();
    summary.exact = summary.exact && reader.total_samples().has_value();
    const auto another = reader.next_stream();
    if (!another) return another.error();
    more = *another;
    if (more) ++summary.streams;
  }
  return summary;
}

Result<ExitCode> tsr_info(const std::string& path, Report& report) {
  auto source = file_source(path);
  if (!source) return source.error();
  auto reader = TsrReader::open(std::move(*source));
  if (!reader) return Error{reader.error().code, path + ": " + reader.error().message};
  const TsrHeader header = reader->header();
  const auto found = scan(*reader);
  if (!found) return found.error();
  const std::uint64_t bytes = reader->bytes();
  const double seconds = static_cast<double>(found->samples) / header.sample_rate_hz;
  const double kbps = true_kbps(bytes, found->samples, header.sample_rate_hz);
  const std::string coder = header.entropy_coder == EntropyCoder::packed ? "pack" : "adaptive";
  const bool damaged = !found->problems.empty() || !found->exact;

  Json json{{"kind", "tsr"},
            {"file", path},
            {"codec", header.codec_id},
            {"weights_hash", hex(header.weights_hash)},
            {"sample_rate_hz", header.sample_rate_hz},
            {"samples_per_frame", header.samples_per_frame},
            {"frame_rate_hz", header.frame_rate_hz()},
            {"channels", header.channels},
            {"codebooks", header.codebooks()},
            {"codebook_sizes", header.codebook_sizes},
            {"coder", coder},
            {"pre_skip", header.pre_skip},
            {"bytes", bytes},
            {"seconds", seconds},
            {"samples", found->samples},
            {"exact_length", found->exact},
            {"frames", found->frames},
            {"kbps", kbps},
            {"streams", found->streams},
            {"segments", found->segments},
            {"lost_frames", found->lost_frames},
            {"damaged", damaged},
            {"problems", found->problems}};
  for (const auto& [key, value] : header.metadata) json["metadata"][key] = value;
  std::string text = table(
      {{"file", path},
       {"codec", header.codec_id + ", weights " + hex(header.weights_hash)},
       {"sound", fixed(seconds, 2) + " s" + (found->exact ? "" : " (end missing)") + ", " +
                     std::to_string(header.sample_rate_hz) +
                     " Hz, channels: " + std::to_string(header.channels)},
       {"tokens", std::to_string(found->frames) + " frames, " + fixed(header.frame_rate_hz(), 2) +
                      " a second, codebooks: " + std::to_string(header.codebooks()) + ", coder: " + coder},
       {"size", std::to_string(bytes) + " bytes, " + fixed(kbps, 2) + " kbps"},
       {"structure", "streams: " + std::to_string(found->streams) +
                         ", segments: " + std::to_string(found->segments) +
                         ", lost frames: " + std::to_string(found->lost_frames)}});
  for (const std::string& problem : found->problems) text += "\ndamage: " + problem;
  report.answer(json, text);
  return damaged ? ExitCode::damaged : ExitCode::ok;
}

Result<ExitCode> weights_info(const std::string& path, Report& report) {
  const auto codec = load_codec({.model = path}, CodecParts::none);
  if (!codec) return codec.error();
  Json json = codec_json((*codec)->info());
  json["kind"] = "weights";
  json["file"] = path;
  report.answer(json, codec_text((*codec)->info()));
  return ExitCode::ok;
}

Result<ExitCode> tokens_info(const std::string& path, Report& report) {
  TokenLayout any;
  any.channels = 0;
  const auto tokens = read_tokens(path, any);
  if (!tokens) return tokens.error();
  const TokenLayout& layout = tokens->layout;
  Json json{{"kind", "tokens"},
            {"file", path},
            {"channels", layout.channels},
            {"codebooks", layout.codebooks},
            {"frames", tokens->frames}};
  const std::string codec = layout.family.empty() ? "not stated" : layout.family;
  if (!layout.family.empty()) json["codec"] = layout.family;
  report.answer(json, table({{"file", path},
                             {"codec", codec},
                             {"tokens", std::to_string(tokens->frames) +
                                            " frames, codebooks: " + std::to_string(layout.codebooks) +
                                            ", channels: " + std::to_string(layout.channels)}}));
  return ExitCode::ok;
}

Result<ExitCode> media_info(const std::string& path, Report& report) {
  const auto reader = AudioReader::open(path);
  if (!reader) return reader.error();
  const AudioInfo& info = reader->input();
  Json json{{"kind", "media"},
            {"file", path},
            {"container", info.container},
            {"codec", info.codec},
            {"sample_rate_hz", info.sample_rate_hz},
            {"channels", info.channels}};
  json["samples"] = info.frames ? Json(*info.frames) : Json();
  json["seconds"] = info.frames       ? Json(static_cast<double>(*info.frames) / info.sample_rate_hz)
                    : info.duration_s ? Json(*info.duration_s)
                                      : Json();
  const std::string length =
      json["seconds"].is_null() ? "length not stated" : fixed(json["seconds"].get<double>(), 2) + " s";
  report.answer(json, table({{"file", path},
                             {"format", info.container + ", " + info.codec},
                             {"sound", length + ", " + std::to_string(info.sample_rate_hz) +
                                           " Hz, channels: " + std::to_string(info.channels)}}));
  return ExitCode::ok;
}

}  // namespace

Result<ExitCode> run(const InfoOptions& options, Session& session) {
  const std::string& path = options.input;
  if (path == "-") return Error{ErrorCode::usage, "expected a file, got a pipe"};
  if (is_tsr_file(path)) return tsr_info(path, session.report);
  if (is_weights_file(path)) return weights_info(path, session.report);
  if (token_format_of(path)) return tokens_info(path, session.report);
  return media_info(path, session.report);
}

}  // namespace tessera::app
