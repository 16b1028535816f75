#include "codec/encodec.h"

#include "codec/config_file.h"
#include "codec/seanet.h"
#include "quantizers/residual_vq.h"

namespace tessera {
namespace {

// Everything but the sample rate can be read off the tensors.
SeanetOptions shape_of(const Weights& weights) {
  const auto stored = [&](const std::string& name) {
    const std::string current = name + ".parametrizations.weight.original1";
    return weights.has(current) ? current : name + ".weight_v";
  };
  SeanetOptions options;
  options.last_kernel = 7;
  options.conv_shortcut = true;
  options.pad = PadMode::reflect;
  options.filters = weights.extent(stored("encoder.layers.0.conv"), 0);
  options.dimension = weights.extent(stored("encoder.layers.15.conv"), 0);
  for (const char* layer : {"12", "9", "6", "3"}) {
    options.ratios.push_back(weights.extent(stored(std::string("encoder.layers.") + layer + ".conv"), 2) / 2);
  }
  while (weights.has("encoder.layers.13.lstm.weight_ih_l" + std::to_string(options.lstm_layers)))
    ++options.lstm_layers;
  return options;
}

std::unique_ptr<Quantizer> quantizer(int dimension, bool searchable, Weights& weights) {
  std::vector<Codebook> codebooks;
  for (int i = 0;; ++i) {
    const std::string name = "quantizer.layers." + std::to_string(i) + ".codebook.embed";
    if (i > 0 && !weights.has(name)) break;
    const int size = weights.extent(name, 0);
    codebooks.emplace_back(weights.get(name, {size, dimension}).values, size, dimension, WeightType::f32,
                           searchable);
  }
  return std::make_unique<ResidualVq>(std::move(codebooks));
}

std::unique_ptr<Model> build(const SafeTensors& file, const std::string& folder, const LoadOptions& options) {
  Weights weights(file, options.weights);
  const SeanetOptions shape = shape_of(weights);
  const ConfigFile config(folder, "encodec");
  const int sample_rate_hz = config.integer("sampling_rate", 24000),
            channels = config.integer("audio_channels", 1);
  if (channels != 1 || sample_rate_hz < 1) {
    throw ResultError({ErrorCode::unsupported, "encodec: expected the causal mono model, got one for " +
                                                   std::to_string(channels) + " channels"});
  }

  auto model = std::make_unique<Model>();
  const int hop = seanet_hop(shape);
  model->info.sample_rate_hz = sample_rate_hz;
  model->info.samples_per_frame = hop;
  model->info.latency_samples = hop;
  model->end = StreamEnd::layers_pad;
  if (options.encoder) model->encoder = seanet_encoder(shape, "encoder", weights);
  if (options.decoder) model->decoder = seanet_decoder(shape, "decoder", weights);
  model->quantizer = quantizer(shape.dimension, options.encoder, weights);
  return model;
}

bool matches(const SafeTensors& file) {
  return file.find("quantizer.layers.0.codebook.embed") && file.find("encoder.layers.13.lstm.weight_ih_l0");
}

}  // namespace

const Family encodec_family{"encodec", "Meta's EnCodec, the causal 24 kHz model: 75 Hz, any bandwidth",
                            matches, build};

}  // namespace tessera
