#include "codec/tessera_family.h"

#include <algorithm>

#include "codec/tessera_config.h"
#include "codec/weights.h"
#include "core/conv1d.h"
#include "core/gain.h"
#include "core/hash.h"
#include "core/sequential.h"
#include "quantizers/factorized_vq.h"
#include "quantizers/residual_vq.h"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw ResultError({ErrorCode::format, "configuration: " + message});
}

struct Transform {
  int hop = 1, window = 1;
  std::vector<float> basis = {};  // [hop, window]
  std::vector<float> scale = {};  // [hop]
};

Transform read_transform(const TesseraConfig& config, Weights& weights) {
  Transform transform;
  transform.hop = config.hop;
  transform.window = config.window;
  transform.basis = weights.get("transform.basis", {config.hop, config.window}).values;
  transform.scale = weights.get("transform.scale", {config.hop}).values;
  for (const float value : transform.scale) {
    if (!(value > 0)) refuse("expected positive values in transform.scale, got " + std::to_string(value));
  }
  return transform;
}

template <class Conv>
std::unique_ptr<Layer> conv(const std::string& name, const Shape& shape, Conv1dOptions options,
                            Weights& weights) {
  const Weight weight = weights.get(name + ".weight", shape);
  const Weight bias = weights.get(name + ".bias", {options.out_channels});
  options.weights = weights.pack_type(weight);
  return std::make_unique<Conv>(options, weight.values, bias.values);
}

std::unique_ptr<Layer> conv1d(const std::string& name, const Conv1dOptions& options, Weights& weights) {
  return conv<Conv1d>(name, {options.out_channels, options.in_channels, options.kernel}, options, weights);
}

void add_analysis(Sequential& layers, const Transform& transform) {
  const Conv1dOptions options{
      .out_channels = transform.hop, .kernel = transform.window, .stride = transform.hop};
  layers.add<Conv1d>(options, transform.basis, std::span<const float>());  // [hop, 1, window]
  layers.add<ScaleChannels>(transform.scale);
}

void add_synthesis(Sequential& layers, const Transform& transform) {
  std::vector<float> inverse(transform.scale);
  for (float& value : inverse) value = 1.0f / value;
  layers.add<ScaleChannels>(std::move(inverse));
  const Conv1dOptions options{
      .in_channels = transform.hop, .out_channels = 1, .kernel = transform.window, .stride = transform.hop};
  layers.add<ConvTranspose1d>(options, transform.basis, std::span<const float>());  // [hop, 1, window]
}

std::unique_ptr<Layer> residual(const TesseraBlock& block, Weights& weights) {
  Conv1dOptions options{.in_channels = block.in,
                        .out_channels = block.out,
                        .kernel = block.kernel,
                        .dilation = block.dilation,
                        .pre = Activation::elu};
  auto inner = std::make_unique<Sequential>();
  inner->add(conv1d(block.name + ".conv1", options, weights));
  options.kernel = options.dilation = 1;
  inner->add(conv1d(block.name + ".conv2", options, weights));
  return std::make_unique<Residual>(std::move(inner));
}

void add_block(Sequential& layers, const TesseraBlock& block, const Transform& transform, Weights& weights) {
  using Kind = TesseraBlock::Kind;
  const Conv1dOptions options{.in_channels = block.in,
                              .out_channels = block.out,
                              .kernel = block.kernel,
                              .stride = block.stride,
                              .dilation = block.dilation};
  switch (block.kind) {
    case Kind::transform:
      add_analysis(layers, transform);
      layers.add<ActivationLayer>(Activation::signed_sqrt, transform.hop);
      break;
    case Kind::inverse_transform:
      layers.add<ActivationLayer>(Activation::signed_square, transform.hop);
      add_synthesis(layers, transform);
      break;
    case Kind::analysis:
      add_analysis(layers, transform);
      break;
    case Kind::synthesis:
      add_synthesis(layers, transform);
      break;
    case Kind::split_gain:
      layers.add<SplitGain>(block.bands);
      break;
    case Kind::join_gain:
      layers.add<JoinGain>(block.bands);
      break;
    case Kind::conv:
      layers.add(conv1d(block.name, options, weights));
      break;
    case Kind::conv_transpose:
      layers.add(conv<ConvTranspose1d>(block.name, {block.in, block.out, block.kernel}, options, weights));
      break;
    case Kind::residual:
      layers.add(residual(block, weights));
      break;
    case Kind::pitch_filter:
      layers.add<PitchFilter>(block.pitch);
      break;
    case Kind::spectral_smoother:
      layers.add<SpectralSmoother>(block.smoother);
      break;
  }
}

// A chain of blocks from `in` to `out` channels.
std::unique_ptr<Layer> chain(const std::vector<TesseraBlock>& blocks, const Transform& transform, int in,
                             int out, Weights& weights) {
  auto layers = std::make_unique<Sequential>();
  for (const TesseraBlock& block : blocks) add_block(*layers, block, transform, weights);
  if (layers->in_channels() != in || layers->out_channels() != out) {
    refuse("expected blocks from " + std::to_string(in) + " to " + std::to_string(out) + " channels, got " +
           std::to_string(layers->in_channels()) + " to " + std::to_string(layers->out_channels()));
  }
  return layers;
}

// Samples per row behind a chain that begins, or before one that ends, with the transform; no more than
// 2^20 + 2^16, however long the chain.
std::int64_t samples_per_row(const std::vector<TesseraBlock>& blocks, int hop) {
  constexpr std::int64_t kMost = 1 << 20;
  std::int64_t samples = 1;
  for (const TesseraBlock& block : blocks) {
    samples = std::min(samples * (block.transforms() ? hop : block.stride), kMost + (1 << 16));
  }
  return samples;
}

int samples_per_frame(const TesseraConfig& config) {
  const std::int64_t down = samples_per_row(config.encoder, config.hop);
  const std::int64_t up = samples_per_row(config.decoder, config.hop);
  if (down != up || down > 1 << 20) {
    refuse(
        "expected an encoder and a decoder with the same number of samples per frame, at most 1048576, got " +
        std::to_string(down) + " and " + std::to_string(up));
  }
  for (const TesseraBlock& block : config.decoder) {
    const int hop = block.sample_hop();
    if (hop == 0 || down % hop == 0) continue;
    const bool pitch = block.kind == TesseraBlock::Kind::pitch_filter;
    refuse(std::string("expected a ") + (pitch ? "pitch filter" : "spectral smoother") +
           " whose hop divides the " + std::to_string(down) + " samples of a frame, got " +
           std::to_string(hop));
  }
  return static_cast<int>(down);
}

std::unique_ptr<Quantizer> residual_quantizer(const TesseraConfig& config, Weights& weights,
                                              bool searchable) {
  std::vector<Codebook> codebooks;
  for (int i = 0; i < config.codebooks; ++i) {
    const Weight codewords =
        weights.get("quantizer." + std::to_string(i) + ".codebook", {config.codebook_size, config.latent});
    codebooks.emplace_back(codewords.values, config.codebook_size, config.latent,
                           codewords.bf16 ? WeightType::bf16 : WeightType::f32, searchable);
  }
  return std::make_unique<ResidualVq>(std::move(codebooks), config.search_paths);
}

std::unique_ptr<Quantizer> factorized_quantizer(const TesseraConfig& config, Weights& weights) {
  const int latent = config.latent, width = config.code_dimension;
  std::vector<FactorizedVq::Level> levels;
  for (int i = 0; i < config.codebooks; ++i) {
    const std::string name = "quantizer." + std::to_string(i);
    FactorizedVq::Level level;
    level.input = weights.matrix(weights.get(name + ".input.weight", {width, latent}), latent, width);
    level.input_bias = weights.get(name + ".input.bias", {width}).values;
    level.output = weights.matrix(weights.get(name + ".output.weight", {latent, width}), width, latent);
    level.output_bias = weights.get(name + ".output.bias", {latent}).values;
    level.codewords = weights.get(name + ".codebook", {config.codebook_size, width}).values;
    levels.push_back(std::move(level));
  }
  return std::make_unique<FactorizedVq>(std::move(levels));
}

// Of all that decides what tokens sound like: not how an encoder searches.
std::uint64_t configuration_hash(TesseraConfig config) {
  config.search_paths = 1;
  const std::string text = to_json(config);
  return content_hash(std::as_bytes(std::span(text)));
}

std::unique_ptr<Model> build(const SafeTensors& file, const std::string&, const LoadOptions& options) {
  const TesseraConfig config = parse_tessera_config(*file.metadata("config"));
  Weights weights(file, options.weights);
  const Transform transform = read_transform(config, weights);
  auto model = std::make_unique<Model>();
  model->info.sample_rate_hz = config.sample_rate_hz;
  model->info.samples_per_frame = samples_per_frame(config);
  model->info.pre_skip = config.pre_skip;
  model->info.latency_samples = model->info.samples_per_frame + config.pre_skip;
  model->info.weights_hash = configuration_hash(config);
  if (options.encoder) model->encoder = chain(config.encoder, transform, 1, config.latent, weights);
  if (options.decoder) model->decoder = chain(config.decoder, transform, config.latent, 1, weights);

  model->quantizer = config.code_dimension > 0 ? factorized_quantizer(config, weights)
                                               : residual_quantizer(config, weights, options.encoder);
  return model;
}

bool matches(const SafeTensors& file) {
  const auto config = file.metadata("config");
  return config && config->find("\"family\"") != std::string_view::npos && file.find("transform.basis");
}

}  // namespace

const Family tessera_family{"tessera", "our own: a transform front end and causal blocks at the frame rate",
                            matches, build};

}  // namespace tessera
