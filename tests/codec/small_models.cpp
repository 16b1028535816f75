#include "tests/codec/small_models.h"

#include <cmath>
#include <cstring>
#include <map>

#include "core/safetensors.h"
#include "tests/random.h"

namespace tessera::test {
namespace {

// Collects random tensors and writes them as a file.
class Maker {
 public:
  void add(const std::string& name, const Shape& shape, float scale, float offset = 0) {
    std::vector<float> values = random_floats(static_cast<std::size_t>(shape.size()), ++seed_, scale);
    for (float& value : values) value += offset;
    set(name, shape, std::move(values));
  }
  void set(const std::string& name, const Shape& shape, std::vector<float> values) {
    shapes_[name] = shape;
    values_[name] = std::move(values);
  }
  // [out, in, kernel] with a spread that keeps the level of what goes through.
  void conv(const std::string& name, int out, int in, int kernel) {
    add(name, {out, in, kernel}, 1.7f / std::sqrt(static_cast<float>(in * kernel)));
  }
  std::string file(const Metadata& metadata = {}) const {
    std::vector<NamedTensor> tensors;
    for (const auto& [name, values] : values_) {
      tensors.push_back({name, DType::f32, shapes_.at(name), std::as_bytes(std::span(values))});
    }
    std::string bytes;
    const ByteSink sink = [&](std::span<const std::byte> part) -> Result<void> {
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
      return {};
    };
    write_safetensors(sink, tensors, metadata).value();
    return bytes;
  }

 private:
  std::map<std::string, Shape> shapes_;
  std::map<std::string, std::vector<float>> values_;
  std::uint64_t seed_ = 0;
};

std::string number(int value) {
  return std::to_string(value);
}

// encoder and decoder; `normalized` stores weight_g and weight_v as EnCodec does.
void add_seanet(Maker& make, const std::array<int, 4>& ratios, int filters, int dimension, int last_kernel,
                bool normalized, bool shortcut, int lstm_layers) {
  const auto conv = [&](const std::string& name, int out, int in, int kernel, bool transposed = false) {
    const int first = transposed ? in : out, second = transposed ? out : in;
    make.conv(name + (normalized ? ".weight_v" : ".weight"), first, second, kernel);
    if (normalized) make.add(name + ".weight_g", {first, 1, 1}, 0.1f, 1.0f);
    make.add(name + ".bias", {out}, 0.1f);
  };
  const auto residual = [&](const std::string& name, int channels) {
    conv(name + ".block.1.conv", channels / 2, channels, 3);
    conv(name + ".block.3.conv", channels, channels / 2, 1);
    if (shortcut) conv(name + ".shortcut.conv", channels, channels, 1);
  };
  const auto lstm = [&](const std::string& name, int channels) {
    for (int i = 0; i < lstm_layers; ++i) {
      for (const char* part : {"ih", "hh"}) {
        make.add(name + ".lstm.weight_" + part + "_l" + number(i), {4 * channels, channels},
                 1.5f / std::sqrt(static_cast<float>(channels)));
        make.add(name + ".lstm.bias_" + part + "_l" + number(i), {4 * channels}, 0.1f);
      }
    }
  };
  int index = 0, channels = filters;
  const auto encoder = [&](int i) { return "encoder.layers." + number(i); };
  conv(encoder(index++) + ".conv", channels, 1, 7);
  for (std::size_t i = 4; i-- > 0;) {
    residual(encoder(index), channels);
    conv(encoder(index + 2) + ".conv", 2 * channels, channels, 2 * ratios[i]);
    index += 3;
    channels *= 2;
  }
  if (lstm_layers) lstm(encoder(index++), channels);
  conv(encoder(index + 1) + ".conv", dimension, channels, last_kernel);

  index = 0;
  const auto decoder = [&](int i) { return "decoder.layers." + number(i); };
  conv(decoder(index++) + ".conv", channels, dimension, 7);
  if (lstm_layers) lstm(decoder(index++), channels);
  for (const int ratio : ratios) {
    conv(decoder(index + 1) + ".conv", channels / 2, channels, 2 * ratio, /*transposed=*/true);
    residual(decoder(index + 2), channels / 2);
    index += 3;
    channels /= 2;
  }
  conv(decoder(index + 1) + ".conv", 1, channels, last_kernel);
}

std::string encodec_weights() {
  Maker make;
  add_seanet(make, {4, 3, 2, 2}, 4, 16, 7, true, true, 2);
  for (int i = 0; i < 4; ++i) make.add("quantizer.layers." + number(i) + ".codebook.embed", {40, 16}, 1.0f);
  return make.file();
}

std::string tessera_weights() {
  constexpr int kHop = 40, kWidth = 24, kLatent = 16;
  Maker make;
  make.add("transform.basis", {kHop, 2 * kHop}, 0.2f);
  make.add("transform.scale", {kHop}, 0.5f, 2.0f);
  const auto conv = [&](const std::string& name, int out, int in, int kernel) {
    make.conv(name + ".weight", out, in, kernel);
    make.add(name + ".bias", {out}, 0.1f);
  };
  const auto block = [&](const std::string& name) {
    conv(name + ".conv1", kWidth, kWidth, 3);
    conv(name + ".conv2", kWidth, kWidth, 1);
  };
  conv("encoder.in", kWidth, kHop, 1);
  block("encoder.block0");
  conv("encoder.out", kLatent, kWidth, 1);
  conv("decoder.in", kWidth, kLatent, 1);
  block("decoder.block0");
  conv("decoder.out", kHop, kWidth, 1);
  for (int i = 0; i < 4; ++i) make.add("quantizer." + number(i) + ".codebook", {30, kLatent}, 1.0f);
  return make.file(
      {{"config", R"({"family":"tessera","version":2,"sample_rate_hz":8000,"hop":40,"window":80,"pre_skip":40,
    "codebooks":4,"codebook_size":30,"latent":16,
    "encoder":[{"block":"transform"},{"block":"conv","name":"encoder.in","in":40,"out":24,"kernel":1,"dilation":1},
               {"block":"residual","name":"encoder.block0","channels":24,"kernel":3,"dilation":2},
               {"block":"conv","name":"encoder.out","in":24,"out":16,"kernel":1,"dilation":1}],
    "decoder":[{"block":"conv","name":"decoder.in","in":16,"out":24,"kernel":1,"dilation":1},
               {"block":"residual","name":"decoder.block0","channels":24,"kernel":3,"dilation":4},
               {"block":"conv","name":"decoder.out","in":24,"out":40,"kernel":1,"dilation":1},
               {"block":"inverse_transform"}]})"}});
}

// The blocks that tessera_weights() leaves out: gain apart from shape, two rows to a frame, the pitch filter.
std::string tessera_gain_weights() {
  constexpr int kHop = 20, kWidth = 24, kLatent = 12;
  Maker make;
  make.add("transform.basis", {kHop, 2 * kHop}, 0.3f);
  make.add("transform.scale", {kHop}, 0.5f, 2.0f);
  const auto add = [&](const std::string& name, const Shape& weight, int out) {
    make.add(name + ".weight", weight, 0.2f);
    make.add(name + ".bias", {out}, 0.1f);
  };
  add("encoder.in", {kWidth, kHop + 3, 2}, kWidth);
  add("encoder.block0.conv1", {kWidth, kWidth, 3}, kWidth);
  add("encoder.block0.conv2", {kWidth, kWidth, 1}, kWidth);
  add("encoder.out", {kLatent, kWidth, 1}, kLatent);
  add("decoder.in", {kWidth, kLatent, 1}, kWidth);
  add("decoder.out", {kWidth, kHop + 3, 2}, kHop + 3);
  for (int i = 0; i < 4; ++i) make.add("quantizer." + number(i) + ".codebook", {30, kLatent}, 1.0f);
  return make.file(
      {{"config",
        R"({"family":"tessera","version":2,"sample_rate_hz":8000,"hop":20,"window":40,"pre_skip":120,"search_paths":3,
    "codebooks":4,"codebook_size":30,"latent":12,
    "encoder":[{"block":"analysis"},{"block":"split_gain","bands":[4,6,10]},
               {"block":"conv","name":"encoder.in","in":23,"out":24,"kernel":2,"stride":2,"dilation":1},
               {"block":"residual","name":"encoder.block0","channels":24,"kernel":3,"dilation":2},
               {"block":"conv","name":"encoder.out","in":24,"out":12,"kernel":1,"dilation":1}],
    "decoder":[{"block":"conv","name":"decoder.in","in":12,"out":24,"kernel":1,"dilation":1},
               {"block":"conv_transpose","name":"decoder.out","in":24,"out":23,"kernel":2,"stride":2},
               {"block":"join_gain","bands":[4,6,10]},{"block":"synthesis"},
               {"block":"pitch_filter","hop":40,"shortest":4,"longest":50,"before":2,"after":1,"smoothing":10,
                "strength":0.9},
               {"block":"spectral_smoother","hop":20,"bins":4,"before":2,"after":1}]})"}});
}

}  // namespace

std::string mimi_weights(const MimiSizes& sizes) {
  const int channels = sizes.channels, hidden = sizes.hidden, dim = sizes.codebook_dim;
  const float spread = 1.6f / std::sqrt(static_cast<float>(channels));
  Maker make;
  add_seanet(make, sizes.ratios, sizes.filters, channels, 3, false, false, 0);
  for (const char* side : {"encoder_transformer", "decoder_transformer"}) {
    for (int i = 0; i < sizes.layers; ++i) {
      const std::string layer = std::string(side) + ".layers." + number(i);
      for (const char* part : {"q", "k", "v", "o"})
        make.add(layer + ".self_attn." + part + "_proj.weight", {channels, channels}, spread);
      make.add(layer + ".mlp.fc1.weight", {hidden, channels}, spread);
      make.add(layer + ".mlp.fc2.weight", {channels, hidden}, spread);
      for (const char* part : {".input_layernorm", ".post_attention_layernorm"}) {
        make.add(layer + part + ".weight", {channels}, 0.1f, 1.0f);
        make.add(layer + part + ".bias", {channels}, 0.1f);
      }
      make.add(layer + ".self_attn_layer_scale.scale", {channels}, 0.1f, 0.5f);
      make.add(layer + ".mlp_layer_scale.scale", {channels}, 0.1f, 0.5f);
    }
  }
  make.conv("downsample.conv.weight", channels, channels, 4);
  make.add("upsample.conv.weight", {channels, 1, 4}, 1.0f);
  const auto quantizer = [&](const std::string& name, int codebooks) {
    make.conv(name + ".input_proj.weight", dim, channels, 1);
    make.conv(name + ".output_proj.weight", channels, dim, 1);
    for (int i = 0; i < codebooks; ++i) {
      make.add(name + ".layers." + number(i) + ".codebook.embed_sum", {sizes.codebook_size, dim}, 2.0f);
      make.add(name + ".layers." + number(i) + ".codebook.cluster_usage", {sizes.codebook_size}, 0.5f, 2.0f);
    }
  };
  quantizer("quantizer.semantic_residual_vector_quantizer", 1);
  quantizer("quantizer.acoustic_residual_vector_quantizer", sizes.codebooks - 1);
  return make.file();
}

const std::vector<std::string>& small_model_names() {
  static const std::vector<std::string> names{"mimi", "encodec", "tessera", "tessera_gain"};
  return names;
}

std::string small_weights(const std::string& family) {
  if (family == "mimi") return mimi_weights({});
  if (family == "encodec") return encodec_weights();
  return family == "tessera" ? tessera_weights() : tessera_gain_weights();
}

std::shared_ptr<const Codec> small_model(const std::string& family, const LoadOptions& options) {
  const std::string file = small_weights(family);
  return Codec::parse(std::as_bytes(std::span(file)), "small " + family, options).value();
}

}  // namespace tessera::test
