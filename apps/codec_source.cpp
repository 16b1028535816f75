// Loading is the slow part of a short run: each command leaves out what it does not use.
#include "apps/codec_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "core/hash.h"

namespace tessera::app {

Result<std::shared_ptr<const Codec>> load_codec(const CodecOptions& options, CodecParts parts) {
  const LoadOptions load{.weights = options.precision,
                         .encoder = parts == CodecParts::encoder,
                         .decoder = parts == CodecParts::decoder};
  return options.model.empty() ? Codec::builtin(load) : Codec::load(options.model, load);
}

StreamOptions stream_options(const CodecInfo& info, int codebooks, int threads) {
  const int second = static_cast<int>(std::lround(info.frame_rate_hz()));
  return {.codebooks = codebooks, .threads = threads, .max_frames_per_step = std::clamp(second, 16, 64)};
}

Result<int> checked_codebooks(const CodecInfo& info, int codebooks) {
  if (codebooks == 0) return info.codebooks;
  if (codebooks >= 1 && codebooks <= info.codebooks) return codebooks;
  return Error{ErrorCode::usage, "expected 1 to " + std::to_string(info.codebooks) + " codebooks, got " +
                                     std::to_string(codebooks) + " (" + info.name + ")"};
}

TsrHeader tsr_header(const CodecInfo& info, int codebooks, int channels, EntropyCoder coder) {
  TsrHeader header;
  header.codec_id = info.family;
  header.weights_hash = info.weights_hash;
  header.sample_rate_hz = info.sample_rate_hz;
  header.samples_per_frame = info.samples_per_frame;
  header.pre_skip = info.pre_skip;
  header.channels = channels;
  header.codebook_sizes.assign(info.codebook_sizes.begin(), info.codebook_sizes.begin() + codebooks);
  header.entropy_coder = coder;
  return header;
}

Result<void> check_belongs(const TsrHeader& header, const std::string& file, const CodecInfo& info) {
  const std::string model = info.name + " (" + info.family + " " + hex(info.weights_hash) + ")";
  if (header.weights_hash != info.weights_hash || header.codec_id != info.family) {
    return Error{ErrorCode::mismatch, file + ": made with the model " + header.codec_id + " " +
                                          hex(header.weights_hash) + ", got " + model +
                                          "; name its weights with --model"};
  }
  const auto stored = static_cast<std::size_t>(header.codebooks());
  const bool same_sizes =
      stored <= info.codebook_sizes.size() &&
      std::equal(header.codebook_sizes.begin(), header.codebook_sizes.end(), info.codebook_sizes.begin());
  if (header.sample_rate_hz == info.sample_rate_hz && header.samples_per_frame == info.samples_per_frame &&
      header.pre_skip == info.pre_skip && same_sizes) {
    return {};
  }
  return Error{ErrorCode::mismatch,
               file + ": its rate, frame length, pre-skip or codebooks are not those of " + model};
}

Result<void> check_not_same(const std::string& input, const std::string& output) {
  std::error_code error;
  if (input == "-" || output == "-" || !std::filesystem::equivalent(input, output, error) || error) return {};
  if (!std::filesystem::is_regular_file(output, error)) return {};
  return Error{ErrorCode::usage, output + ": input and output are the same file"};
}

}  // namespace tessera::app
