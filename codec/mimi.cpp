#include "codec/mimi.h"

#include "codec/config_file.h"
#include "codec/mimi_names.h"
#include "codec/seanet.h"
#include "quantizers/residual_vq.h"
#include "transformer/transformer_layer.h"

namespace tessera {
namespace {

// What the tensors' shapes do not say.
struct MimiConfig {
  int sample_rate_hz;
  int heads;
  int window;
  double theta;
  double norm_eps;
};

// Channels and ratios as the tensors have them.
struct MimiShape {
  SeanetOptions seanet;
  int codebook_dim = 0;
};

MimiShape shape_of(const Weights& weights) {
  MimiShape shape;
  shape.seanet.filters = weights.extent("encoder.layers.0.conv.weight", 0);
  shape.seanet.dimension = weights.extent("encoder.layers.14.conv.weight", 0);
  for (const char* layer : {"12", "9", "6", "3"}) {
    shape.seanet.ratios.push_back(weights.extent(std::string("encoder.layers.") + layer + ".conv.weight", 2) /
                                  2);
  }
  shape.codebook_dim = weights.extent("quantizer.semantic_residual_vector_quantizer.input_proj.weight", 0);
  return shape;
}

// One output channel's layer scale goes into its row of the weights.
Weight scaled_rows(Weight weight, const Weight& scale) {
  const std::size_t row = weight.values.size() / scale.values.size();
  for (std::size_t i = 0; i < weight.values.size(); ++i) weight.values[i] *= scale.values[i / row];
  weight.bf16 = false;
  return weight;
}

// Member by member: g++ 12 destroys the members of a braced initialiser twice when a later one throws.
TransformerLayerWeights transformer_layer(const std::string& name, int channels,
                                          const AttentionOptions& attention, Weights& weights) {
  const auto get = [&](const std::string& part, const Shape& shape) {
    return weights.get(name + part, shape);
  };
  const auto norm = [&](const std::string& part) {
    NormWeights result;
    result.weight = get(part + ".weight", {channels}).values;
    result.bias = get(part + ".bias", {channels}).values;
    return result;
  };
  Weight qkv;
  for (const char* part : {"q", "k", "v"}) {
    const Weight one = mimi_projection(weights, name + ".self_attn.", *part, channels, attention.heads);
    qkv.values.insert(qkv.values.end(), one.values.begin(), one.values.end());
    qkv.bf16 = one.bf16;
  }
  const int hidden = weights.extent(name + ".mlp.fc1.weight", 0);
  const Weight out = scaled_rows(get(".self_attn.o_proj.weight", {channels, channels}),
                                 get(".self_attn_layer_scale.scale", {channels}));
  const Weight down =
      scaled_rows(get(".mlp.fc2.weight", {channels, hidden}), get(".mlp_layer_scale.scale", {channels}));
  TransformerLayerWeights layer;
  layer.norm1 = norm(".input_layernorm");
  layer.qkv.weight = weights.matrix(qkv, channels, 3 * channels);
  layer.out.weight = weights.matrix(out, channels, channels);
  layer.norm2 = norm(".post_attention_layernorm");
  layer.up.weight = weights.matrix(get(".mlp.fc1.weight", {hidden, channels}), channels, hidden);
  layer.down.weight = weights.matrix(down, hidden, channels);
  return layer;
}

std::unique_ptr<Layer> transformer(const std::string& name, int channels, const MimiConfig& config,
                                   Weights& weights) {
  const AttentionOptions attention{.heads = config.heads,
                                   .kv_heads = config.heads,
                                   .head_dim = channels / config.heads,
                                   .window = config.window};
  std::vector<TransformerLayerWeights> layers;
  for (int i = 0;; ++i) {
    const std::string layer = name + ".layers." + std::to_string(i);
    if (i > 0 && !weights.has(layer + ".mlp.fc1.weight")) break;
    layers.push_back(transformer_layer(layer, channels, attention, weights));
  }
  return std::make_unique<Transformer>(
      TransformerOptions{.channels = channels,
                         .hidden = weights.extent(name + ".layers.0.mlp.fc1.weight", 0),
                         .attention = attention,
                         .theta = config.theta,
                         .rope = RopeLayout::half,
                         .norm = NormKind::layer_norm,
                         .norm_eps = static_cast<float>(config.norm_eps),
                         .activation = Activation::gelu},
      std::move(layers));
}

SplitResidualVq::Half quantizer_half(const std::string& name, const MimiShape& shape, bool searchable,
                                     Weights& weights) {
  const int channels = shape.seanet.dimension, dim = shape.codebook_dim;
  std::vector<Codebook> codebooks;
  for (int i = 0;; ++i) {
    const std::string codebook = name + ".layers." + std::to_string(i) + ".codebook.";
    if (i > 0 && !weights.has(codebook + "cluster_usage")) break;
    const int size = weights.extent(codebook + "cluster_usage", 0);
    const Weight usage = weights.get(codebook + "cluster_usage", {size});
    Weight codewords = weights.get(codebook + "embed_sum", {size, dim});
    for (std::size_t j = 0; j < codewords.values.size(); ++j) {
      codewords.values[j] /= std::max(usage.values[j / static_cast<std::size_t>(dim)], 1e-5f);
    }
    codebooks.emplace_back(codewords.values, size, dim, WeightType::f32, searchable);
  }
  const Weight in = weights.get(name + ".input_proj.weight", {dim, channels, 1});
  const Weight out = weights.get(name + ".output_proj.weight", {channels, dim, 1});
  PackedMatrix input = weights.matrix(in, channels, dim), output = weights.matrix(out, dim, channels);
  return {ResidualVq(std::move(codebooks)), std::move(input), std::move(output)};
}

MimiConfig read_config(const std::string& folder, int channels) {
  const ConfigFile file(folder, "mimi");
  const MimiConfig config{.sample_rate_hz = file.integer("sampling_rate", 24000),
                          .heads = file.integer("num_attention_heads", channels / 64),
                          .window = file.integer("sliding_window", 250),
                          .theta = file.number("rope_theta", 10000),
                          .norm_eps = file.number("norm_eps", 1e-5)};
  const bool fits = config.sample_rate_hz > 0 && config.heads > 0 && channels % config.heads == 0 &&
                    channels / config.heads % 16 == 0 && config.window > 0 && config.window <= 1 << 16 &&
                    config.theta > 0 && config.norm_eps > 0;
  if (!fits) {
    throw ResultError(
        {ErrorCode::mismatch, "mimi: " + std::to_string(config.heads) + " heads do not fit " +
                                  std::to_string(channels) +
                                  " channels; a reduced model needs its config.json beside it"});
  }
  return config;
}

std::unique_ptr<Model> build(const SafeTensors& file, const std::string& folder, const LoadOptions& options) {
  Weights weights(file, options.weights);
  if (has_kyutai_names(file)) weights.set_rename(kyutai_name);
  const MimiShape shape = shape_of(weights);
  const int channels = shape.seanet.dimension;
  const MimiConfig config = read_config(folder, channels);

  auto model = std::make_unique<Model>();
  const int hop =
      2 * seanet_hop(shape.seanet);  // 2: the resampling convolution between SEANet and the quantizer
  model->info.sample_rate_hz = config.sample_rate_hz;
  model->info.samples_per_frame = hop;
  model->info.latency_samples = hop;
  if (options.encoder) {
    auto encoder = std::make_unique<Sequential>();
    encoder->add(seanet_encoder(shape.seanet, "encoder", weights));
    encoder->add(transformer("encoder_transformer", channels, config, weights));
    const Weight down = weights.get("downsample.conv.weight", {channels, channels, 4});
    encoder->add<Conv1d>(Conv1dOptions{.in_channels = channels,
                                       .out_channels = channels,
                                       .kernel = 4,
                                       .stride = 2,
                                       .pad = PadMode::replicate,
                                       .weights = weights.pack_type(down)},
                         down.values, std::span<const float>());
    model->encoder = std::move(encoder);
  }
  if (options.decoder) {
    auto decoder = std::make_unique<Sequential>();
    const Weight up = weights.get("upsample.conv.weight", {channels, 1, 4});
    decoder->add<DepthwiseConv1d>(
        Conv1dOptions{
            .in_channels = channels, .out_channels = channels, .kernel = 4, .stride = 2, .groups = channels},
        /*transposed=*/true, up.values, std::span<const float>());
    decoder->add(transformer("decoder_transformer", channels, config, weights));
    decoder->add(seanet_decoder(shape.seanet, "decoder", weights));
    model->decoder = std::move(decoder);
  }
  model->quantizer = std::make_unique<SplitResidualVq>(
      quantizer_half("quantizer.semantic_residual_vector_quantizer", shape, options.encoder, weights),
      quantizer_half("quantizer.acoustic_residual_vector_quantizer", shape, options.encoder, weights));
  return model;
}

bool matches(const SafeTensors& file) {
  return file.find("quantizer.semantic_residual_vector_quantizer.input_proj.weight") ||
         has_kyutai_names(file);
}

}  // namespace

const Family mimi_family{"mimi", "kyutai's Mimi: 24 kHz speech, 12.5 Hz, semantic and acoustic codebooks",
                         matches, build};

}  // namespace tessera
