#include "codec/codec.h"

#include <cmath>
#include <filesystem>

#include "codec/model.h"
#include "codec/weights.h"
#include "core/error.h"
#include "models/builtin.h"

namespace tessera {
namespace {

constexpr const char* kBuiltinName = "tessera_speech (built in)";

Error unknown_family(const SafeTensors& file) {
  std::string known;
  for (const Family& family : families()) known += std::string(known.empty() ? "" : ", ") + family.name;
  return {ErrorCode::unsupported, file.name() + ": expected the weights of a codec (" + known + "), got " +
                                      std::to_string(file.names().size()) + " tensors of none of them"};
}

// What goes in and out of a network must be samples and frames.
void expect_frames(const Layer* network, const RowRatio& expected) {
  if (!network) return;
  const RowRatio ratio = network->ratio();
  if (ratio.up != expected.up || ratio.down != expected.down) {
    throw ResultError({ErrorCode::format, "expected a network with " + std::to_string(expected.up) +
                                              " rows out for " + std::to_string(expected.down) +
                                              " in, got one with " + std::to_string(ratio.up) + " for " +
                                              std::to_string(ratio.down)});
  }
}

Result<std::unique_ptr<Model>> build(const SafeTensors& file, const std::string& folder,
                                     const LoadOptions& options) {
  for (const Family& family : families()) {
    if (!family.matches(file)) continue;
    try {
      std::unique_ptr<Model> model = family.build(file, folder, options);
      CodecInfo& info = model->info;
      expect_frames(model->encoder.get(), {1, info.samples_per_frame});
      expect_frames(model->decoder.get(), {info.samples_per_frame, 1});
      info.family = family.name;
      info.name = file.name();
      info.weights_hash += weights_hash(file);
      info.parameters = count_parameters(file);
      info.codebooks = model->quantizer->codebooks();
      for (int i = 0; i < info.codebooks; ++i)
        info.codebook_sizes.push_back(model->quantizer->codebook_size(i));
      return model;
    } catch (const ResultError& error) {
      const bool named = error.error().message.starts_with(file.name());
      return Error{error.error().code, (named ? "" : file.name() + ": ") + error.error().message};
    } catch (
        const UsageError& error) {  // sizes that do not fit one another: the file's fault, not the caller's
      return Error{ErrorCode::format, file.name() + ": " + error.what()};
    }
  }
  return unknown_family(file);
}

}  // namespace

double CodecInfo::bitrate_bps(int count) const {
  double bits = 0;
  for (int i = 0; i < count; ++i) bits += std::ceil(std::log2(codebook_sizes[static_cast<std::size_t>(i)]));
  return bits * frame_rate_hz();
}

std::int64_t CodecInfo::frames_for(std::int64_t samples) const {
  if (samples <= 0) return 0;
  return (samples + pre_skip + samples_per_frame - 1) / samples_per_frame;
}

Codec::Codec(std::unique_ptr<const Model> model) : model_(std::move(model)) {}
Codec::~Codec() = default;

Result<std::shared_ptr<const Codec>> Codec::wrap(Result<std::unique_ptr<Model>> model) {
  if (!model) return model.error();
  return std::shared_ptr<const Codec>(new Codec(std::move(*model)));
}

Result<std::shared_ptr<const Codec>> Codec::load(const std::string& path, const LoadOptions& options) {
  const auto file = SafeTensors::open(path);
  if (!file) return file.error();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return wrap(build(**file, folder.empty() ? "." : folder.string(), options));
}

Result<std::shared_ptr<const Codec>> Codec::parse(std::span<const std::byte> bytes, const std::string& name,
                                                  const LoadOptions& options) {
  const auto file = SafeTensors::parse(bytes, name);
  if (!file) return file.error();
  return wrap(build(**file, "", options));
}

Result<std::shared_ptr<const Codec>> Codec::builtin(const LoadOptions& options) {
  return parse(builtin_model(), kBuiltinName, options);
}

const CodecInfo& Codec::info() const {
  return model_->info;
}

Encoder Codec::encoder(const StreamOptions& options) const {
  return Encoder(shared_from_this(), options);
}
Decoder Codec::decoder(const StreamOptions& options) const {
  return Decoder(shared_from_this(), options);
}

}  // namespace tessera
