#include "codec/tessera_family.h"

#include <nlohmann/json.hpp>

#include "codec/weights.h"
#include "core/conv1d.h"
#include "core/sequential.h"
#include "quantizers/residual_vq.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr int kMaxExtent = 1 << 16;  // of anything in a configuration

[[noreturn]] void refuse(const std::string& message) {
  throw ResultError({ErrorCode::format, "configuration: " + message});
}

// Reads fields of the configuration; whatever is not as expected is refused.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  int integer(const char* key, int lowest = 1) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_number_integer()) {
      const auto value = found->get<std::int64_t>();
      if (value >= lowest && value <= kMaxExtent) return static_cast<int>(value);
    }
    bad(key, "an integer from " + std::to_string(lowest) + " to " + std::to_string(kMaxExtent));
  }
  std::string text(const char* key) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_string()) return found->get<std::string>();
    bad(key, "a string");
  }
  const Json& list(const char* key) const {
    const auto found = json_.find(key);
    if (found != json_.end() && found->is_array()) return *found;
    bad(key, "a list");
  }

 private:
  [[noreturn]] void bad(const char* key, const std::string& expected) const {
    refuse("expected " + expected + " under \"" + key + "\", got " +
           (json_.is_object() && json_.contains(key) ? json_[key].dump() : "nothing"));
  }

  const Json& json_;
};

struct Transform {
  int hop = 1, window = 1;
  std::vector<float> basis;  // [hop, window]
  std::vector<float> scale;  // [hop]
};

Transform read_transform(const Fields& config, Weights& weights) {
  Transform transform{config.integer("hop"), config.integer("window"), {}, {}};
  if (transform.window % transform.hop) {
    refuse("expected a window that is a multiple of the hop " + std::to_string(transform.hop) + ", got " +
           std::to_string(transform.window));
  }
  transform.basis = weights.get("transform.basis", {transform.hop, transform.window}).values;
  transform.scale = weights.get("transform.scale", {transform.hop}).values;
  for (const float value : transform.scale) {
    if (!(value > 0)) refuse("expected positive values in transform.scale, got " + std::to_string(value));
  }
  return transform;
}

std::unique_ptr<Layer> conv(const std::string& name, Conv1dOptions options, Weights& weights) {
  const Weight weight =
      weights.get(name + ".weight", {options.out_channels, options.in_channels, options.kernel});
  const Weight bias = weights.get(name + ".bias", {options.out_channels});
  options.weights = weights.pack_type(weight);
  return std::make_unique<Conv1d>(options, weight.values, bias.values);
}

// {"block": "transform"}: MDCT coefficients, scaled and companded by a signed square root.
void add_transform(Sequential& layers, const Transform& transform) {
  Conv1dOptions options{.out_channels = transform.hop, .kernel = transform.window, .stride = transform.hop};
  layers.add<Conv1d>(options, transform.basis, std::span<const float>());  // [hop, 1, window]
  layers.add<ScaleChannels>(transform.scale);
  layers.add<ActivationLayer>(Activation::signed_sqrt, transform.hop);
}

// {"block": "inverse_transform"}: expanded, unscaled, inverse MDCT with overlap-add.
void add_inverse_transform(Sequential& layers, const Transform& transform) {
  std::vector<float> inverse(transform.scale);
  for (float& value : inverse) value = 1.0f / value;
  layers.add<ActivationLayer>(Activation::signed_square, transform.hop);
  layers.add<ScaleChannels>(std::move(inverse));
  Conv1dOptions options{
      .in_channels = transform.hop, .out_channels = 1, .kernel = transform.window, .stride = transform.hop};
  layers.add<ConvTranspose1d>(options, transform.basis, std::span<const float>());  // [hop, 1, window]
}

void add_block(Sequential& layers, const Json& json, const Transform& transform, Weights& weights) {
  const Fields fields(json);
  const std::string block = fields.text("block");
  if (block == "transform") {
    add_transform(layers, transform);
  } else if (block == "inverse_transform") {
    add_inverse_transform(layers, transform);
  } else if (block == "conv") {  // {"block": "conv", "name", "in", "out", "kernel", "dilation"}
    layers.add(conv(fields.text("name"),
                    {.in_channels = fields.integer("in"),
                     .out_channels = fields.integer("out"),
                     .kernel = fields.integer("kernel"),
                     .dilation = fields.integer("dilation")},
                    weights));
  } else if (block == "residual") {  // {"block": "residual", "name", "channels", "kernel", "dilation"}
    const int channels = fields.integer("channels");
    const std::string name = fields.text("name");
    auto inner = std::make_unique<Sequential>();
    inner->add(conv(name + ".conv1",
                    {.in_channels = channels,
                     .out_channels = channels,
                     .kernel = fields.integer("kernel"),
                     .dilation = fields.integer("dilation"),
                     .pre = Activation::elu},
                    weights));
    inner->add(conv(name + ".conv2",
                    {.in_channels = channels, .out_channels = channels, .pre = Activation::elu}, weights));
    layers.add<Residual>(std::move(inner));
  } else {
    refuse("expected a block transform, inverse_transform, conv or residual, got \"" + block + "\"");
  }
}

// A chain of blocks from `in` to `out` channels.
std::unique_ptr<Layer> chain(const Json& blocks, const Transform& transform, int in, int out,
                             Weights& weights) {
  auto layers = std::make_unique<Sequential>();
  for (const Json& block : blocks) add_block(*layers, block, transform, weights);
  if (layers->in_channels() != in || layers->out_channels() != out) {
    refuse("expected blocks from " + std::to_string(in) + " to " + std::to_string(out) + " channels, got " +
           std::to_string(layers->in_channels()) + " to " + std::to_string(layers->out_channels()));
  }
  return layers;
}

std::unique_ptr<Model> build(const SafeTensors& file, const std::string&, const LoadOptions& options) {
  const Json json = Json::parse(*file.metadata("config"), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) refuse("expected a JSON object under \"config\"");
  Weights weights(file, options.weights);
  const Fields config(json);
  if (const int version = config.integer("version"); version != 2) {
    throw ResultError(
        {ErrorCode::unsupported, "configuration: expected version 2, got " + std::to_string(version)});
  }
  const int latent = config.integer("latent"), size = config.integer("codebook_size");
  const Transform transform = read_transform(config, weights);
  auto model = std::make_unique<Model>();
  model->info.sample_rate_hz = config.integer("sample_rate_hz");
  model->info.samples_per_frame = transform.hop;
  model->info.pre_skip = config.integer("pre_skip", 0);
  model->info.latency_samples = transform.hop + model->info.pre_skip;
  if (options.encoder) model->encoder = chain(config.list("encoder"), transform, 1, latent, weights);
  if (options.decoder) model->decoder = chain(config.list("decoder"), transform, latent, 1, weights);

  std::vector<Codebook> codebooks;
  for (int i = 0; i < config.integer("codebooks"); ++i) {
    const Weight codewords = weights.get("quantizer." + std::to_string(i) + ".codebook", {size, latent});
    codebooks.emplace_back(codewords.values, size, latent,
                           codewords.bf16 ? WeightType::bf16 : WeightType::f32, options.encoder);
  }
  model->quantizer = std::make_unique<ResidualVq>(std::move(codebooks));
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
