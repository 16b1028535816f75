// A container may hold several streams, appended one behind the other: each is decoded with fresh state, and
// their sound follows in one file.
#include <algorithm>
#include <string>
#include <utility>

#include "apps/audio_decoder.h"
#include "apps/codec_source.h"
#include "apps/decoding.h"
#include "apps/progress.h"
#include "codec/tsr_reader.h"

namespace tessera::app {
namespace {

// As much is concealed in all, and as much again as was decoded: the length of a gap comes from the file, and
// a forged one must not fill the disk.
constexpr std::int64_t kLostSeconds = 3600;

// One stream of a .tsr file after another, each with fresh state.
class TsrDecoding {
 public:
  /// `bytes`: of the whole input, if known.
  TsrDecoding(const DecodeOptions& options, TsrReader& reader, std::optional<std::uint64_t> bytes,
              std::shared_ptr<const Codec> codec, Report& report)
      : options_(options),
        reader_(reader),
        bytes_(bytes),
        codec_(std::move(codec)),
        report_(report),
        progress_("decoding", report.progress()) {}

  Result<Decoded> run(AudioWriter& writer) {
    const TsrHeader& header = reader_.header();
    done_.channels = header.channels;
    done_.codebooks = options_.codebooks > 0 ? options_.codebooks : header.codebooks();
    for (bool more = true; more;) {
      AudioDecoder decoder(codec_, header.channels, stream_options(codec_->info(), 0, options_.codec.threads),
                           writer);
      if (auto decoded = stream(decoder); !decoded) return decoded.error();
      const auto next = reader_.next_stream();
      if (!next) return next.error();
      more = *next;
    }
    done_.wall_s = progress_.elapsed_s();
    done_.clipped = writer.clipped();
    if (auto finished = writer.finish(); !finished) return finished.error();
    return done_;
  }

 private:
  Result<void> stream(AudioDecoder& decoder) {
    for (;;) {
      auto next = reader_.next(done_.codebooks);
      if (!next) return next.error();
      if (!*next) break;
      const TsrSegment& segment = **next;
      auto decoded = segment.lost ? lost(segment, decoder) : decoder.push(segment.tokens, segment.codebooks);
      if (!decoded) return decoded;
      show_progress(seconds(done_.samples + decoder.samples()));
    }
    std::optional<std::int64_t> total;
    if (reader_.total_samples()) total = static_cast<std::int64_t>(*reader_.total_samples());
    const auto length = decoder.finish(total);
    if (!length) return length.error();
    if (total && *length != *total) {
      warn("the trailer says " + std::to_string(*total) + " samples, the frames give " +
           std::to_string(*length));
    } else if (!total && !done_.damaged) {
      warn("the end is missing: the exact length is not known");
    }
    done_.samples += *length;
    return {};
  }

  Result<void> lost(const TsrSegment& segment, AudioDecoder& decoder) {
    const CodecInfo& info = codec_->info();
    const std::int64_t passed = (done_.samples + decoder.samples()) / info.samples_per_frame;
    const std::int64_t hour = kLostSeconds * info.sample_rate_hz / info.samples_per_frame;
    const std::int64_t most = std::max<std::int64_t>(0, hour + passed - 2 * done_.lost_frames);
    const auto frames =
        static_cast<std::int64_t>(std::min<std::uint64_t>(segment.frames, static_cast<std::uint64_t>(most)));
    const double from = std::max(0.0, seconds(done_.samples + decoder.samples()));
    const double length = static_cast<double>(frames) / info.frame_rate_hz();
    std::string what = segment.reason;
    if (frames > 0) what += "; " + clock_time(from) + " to " + clock_time(from + length) + " concealed";
    if (static_cast<std::uint64_t>(frames) != segment.frames) what += ", the rest of the gap left out";
    warn(what);
    done_.lost_frames += frames;
    return decoder.lost(frames);
  }

  void warn(const std::string& what) {
    progress_.clear();
    done_.damaged = true;
    report_.warning((options_.input == "-" ? "standard input" : options_.input) + ": " + what);
  }

  double seconds(std::int64_t samples) const {
    return static_cast<double>(samples) / codec_->info().sample_rate_hz;
  }

  // The length stands at the end of the file: until then it is guessed from the part of the bytes that is
  // done.
  void show_progress(double done_s) {
    std::optional<double> total_s;
    if (bytes_ && reader_.bytes() > 0) {
      total_s = done_s * static_cast<double>(*bytes_) / static_cast<double>(reader_.bytes());
    }
    progress_.update(done_s, total_s);
  }

  const DecodeOptions& options_;
  TsrReader& reader_;
  std::optional<std::uint64_t> bytes_;
  std::shared_ptr<const Codec> codec_;
  Report& report_;
  Progress progress_;
  Decoded done_;
};

}  // namespace

Result<Decoded> decode_tsr(const DecodeOptions& options, std::shared_ptr<const Codec> codec,
                           Session& session) {
  auto source = file_source(options.input);
  if (!source) return source.error();
  const auto bytes = source->size;
  auto reader = TsrReader::open(std::move(*source));
  const std::string name = options.input == "-" ? "standard input" : options.input;
  if (!reader) return Error{reader.error().code, name + ": " + reader.error().message};
  const TsrHeader& header = reader->header();
  if (auto belongs = check_belongs(header, name, codec->info()); !belongs) return belongs.error();
  if (options.codebooks > header.codebooks()) {
    return Error{ErrorCode::usage, name + ": expected 1 to " + std::to_string(header.codebooks()) +
                                       " codebooks, got " + std::to_string(options.codebooks)};
  }
  auto writer = create_output(options, codec->info(), header.channels, session.interrupt);
  if (!writer) return writer.error();
  return TsrDecoding(options, *reader, bytes, std::move(codec), session.report).run(*writer);
}

}  // namespace tessera::app
