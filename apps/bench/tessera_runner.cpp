// Encoder and decoder run on one thread, in the steps that the command takes, and the decoder gets its tokens
// from the container's reader: what is counted is what is decoded.
#include "apps/bench/tessera_runner.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/bench/file_runner.h"
#include "apps/bench/runner_names.h"
#include "apps/codec_source.h"
#include "codec/codec.h"
#include "codec/tsr_reader.h"
#include "codec/tsr_scanner.h"
#include "codec/tsr_writer.h"
#include "core/hash.h"

namespace tessera::bench {
namespace {

/// Bytes of the segments' tokens, without the blocks around them.
Result<std::int64_t> token_bytes(std::span<const std::byte> file) {
  auto scanner = tsr::Scanner::open(memory_source(file));
  if (!scanner) return scanner.error();
  std::int64_t bytes = 0;
  for (;;) {
    const auto block = scanner->next();
    if (!block) return block.error();
    if (block->kind == tsr::Block::Kind::end) return bytes;
    if (block->kind == tsr::Block::Kind::segment) {
      bytes += static_cast<std::int64_t>(block->segment.payload_bytes);
    }
  }
}

class TesseraRunner : public FileRunner {
 public:
  TesseraRunner(std::string name, const TesseraOptions& options, std::vector<int> codebooks,
                std::shared_ptr<const Codec> codec)
      : FileRunner(std::move(name)),
        model_(options.model),
        precision_(options.precision),
        codebooks_(std::move(codebooks)),
        codec_(std::move(codec)) {}

  std::string version() const override {
    return "tessera " TESSERA_VERSION ", " + info().family + " weights " + hex(info().weights_hash) +
           precision_text(" in ");
  }

  std::string recipe(const OperatingPoint& point) const override {
    const std::string options =
        (model_.empty() ? "" : " --model " + model_) + precision_text(" --precision ");
    return "tessera encode" + options + " --codebooks " + point.setting + " IN.wav OUT.tsr; tessera decode" +
           options + " OUT.tsr DECODED.wav";
  }

  std::vector<OperatingPoint> points() const override {
    std::vector<OperatingPoint> points;
    for (const int count : codebooks_) {
      const std::string number = std::to_string(count);
      points.push_back({.name = number + (count == 1 ? " codebook" : " codebooks"),
                        .nominal_kbps = info().bitrate_bps(count) / 1000,
                        .setting = number});
    }
    return points;
  }

  bool conceals() const override { return true; }
  int coded_rate_hz(const OperatingPoint& /*point*/, int /*sample_rate_hz*/) const override {
    return info().sample_rate_hz;
  }

  Result<CodedFile> encode(const OperatingPoint& point, std::span<const float> pcm,
                           int /*coded_rate_hz*/) const override {
    const auto codebooks = chosen(point);
    if (!codebooks) return codebooks.error();
    CodedFile file;
    auto writer = TsrWriter::open(
        [&file](std::span<const std::byte> bytes) {
          file.bytes.insert(file.bytes.end(), bytes.begin(), bytes.end());
          return Result<void>();
        },
        app::tsr_header(info(), *codebooks, 1, EntropyCoder::adaptive));
    if (!writer) return writer.error();

    Encoder encoder = codec_->encoder(app::stream_options(info(), *codebooks, 1));
    Result<void> written;
    const auto write = [&](const Frame& frame) {
      if (written) written = writer->push(frame.tokens);
    };
    encoder.push(pcm, write);
    encoder.flush(write);
    if (!written) return written.error();
    if (auto finished = writer->finish(pcm.size()); !finished) return finished.error();

    const auto payload = token_bytes(file.bytes);
    if (!payload) return payload.error();
    file.payload_bytes = *payload;
    return file;
  }

  Result<DecodedFile> decode(const OperatingPoint& /*point*/, std::span<const std::byte> file,
                             int /*coded_rate_hz*/, LossTrace* loss) const override {
    auto reader = TsrReader::open(memory_source(file));
    if (!reader) return reader.error();
    Decoder decoder = codec_->decoder(app::stream_options(info(), reader->header().codebooks(), 1));
    DecodedFile decoded;
    decoded.sample_rate_hz = info().sample_rate_hz;
    const auto append = [&decoded](std::span<const float> pcm) {
      decoded.pcm.insert(decoded.pcm.end(), pcm.begin(), pcm.end());
    };
    for (;;) {
      auto segment = reader->next();
      if (!segment) return segment.error();
      if (!*segment) break;
      if ((*segment)->lost) return Error{ErrorCode::damaged, (*segment)->reason};
      const std::span<const std::int32_t> tokens = (*segment)->tokens;
      const auto frame = static_cast<std::size_t>((*segment)->codebooks);
      decoded.packets += static_cast<std::int64_t>((*segment)->frames);
      const std::size_t step = loss ? frame : tokens.size();
      for (std::size_t at = 0; at < tokens.size(); at += step) {
        if (loss && loss->next()) {
          decoder.lost(append);
          ++decoded.lost;
        } else if (auto pushed = decoder.push(tokens.subspan(at, step), append); !pushed) {
          return pushed.error();
        }
      }
    }
    decoder.flush(append);
    if (const auto total = reader->total_samples(); total && *total < decoded.pcm.size()) {
      decoded.pcm.resize(*total);
    }
    return decoded;
  }

 private:
  const CodecInfo& info() const { return codec_->info(); }

  Result<int> chosen(const OperatingPoint& point) const {
    for (const int count : codebooks_) {
      if (point.setting == std::to_string(count)) return count;
    }
    return Error{ErrorCode::usage,
                 "expected a number of codebooks out of " + joined(codebooks_) + ", got " + point.setting};
  }

  std::string precision_text(const std::string& before) const {
    if (precision_ == WeightType::f32) return "";
    return before + (precision_ == WeightType::bf16 ? "bf16" : "int8");
  }

  static std::string joined(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text;
  }

  std::string model_;
  WeightType precision_;
  std::vector<int> codebooks_;
  std::shared_ptr<const Codec> codec_;
};

}  // namespace

Result<std::unique_ptr<CodecRunner>> make_tessera_runner(const TesseraOptions& options) {
  const LoadOptions load{.weights = options.precision};
  auto codec = options.model.empty() ? Codec::builtin(load) : Codec::load(options.model, load);
  if (!codec) return codec.error();
  const CodecInfo& info = (*codec)->info();
  std::vector<int> codebooks = options.codebooks;
  if (codebooks.empty()) {
    for (int count = 1; count <= info.codebooks; ++count) codebooks.push_back(count);
  }
  for (const int count : codebooks) {
    if (count < 1 || count > info.codebooks) {
      return Error{ErrorCode::usage, info.name + ": expected 1 to " + std::to_string(info.codebooks) +
                                         " codebooks, got " + std::to_string(count)};
    }
  }
  std::string name = options.name;
  if (name.empty() && options.model.empty()) name = info.name.substr(0, info.name.find(' '));
  if (name.empty()) name = safe_name(std::filesystem::path(options.model).stem().string());
  return std::unique_ptr<CodecRunner>(
      std::make_unique<TesseraRunner>(std::move(name), options, std::move(codebooks), *std::move(codec)));
}

}  // namespace tessera::bench
