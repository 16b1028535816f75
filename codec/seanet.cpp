#include "codec/seanet.h"

#include "core/lstm_layer.h"

namespace tessera {
namespace {

// Rows at the sample rate that the layers next to it work on at a time: a frame of Mimi, two hundred KB of
// activations.
constexpr int kBlockRows = 960;

class Builder {
 public:
  Builder(const SeanetOptions& options, std::string prefix, Weights& weights)
      : options_(options), prefix_(std::move(prefix)), weights_(weights) {}

  std::string name(int layer) const { return prefix_ + ".layers." + std::to_string(layer); }

  std::unique_ptr<Layer> conv(const std::string& name, Conv1dOptions shape) const {
    const Weight weight =
        weights_.get_normalized(name, {shape.out_channels, shape.in_channels, shape.kernel});
    const Weight bias = weights_.get(name + ".bias", {shape.out_channels});
    shape.pad = options_.pad;
    shape.weights = weights_.pack_type(weight);
    return std::make_unique<Conv1d>(shape, weight.values, bias.values);
  }

  std::unique_ptr<Layer> upsample(const std::string& name, Conv1dOptions shape) const {
    const Weight weight =
        weights_.get_normalized(name, {shape.in_channels, shape.out_channels, shape.kernel});
    const Weight bias = weights_.get(name + ".bias", {shape.out_channels});
    shape.weights = weights_.pack_type(weight);
    return std::make_unique<ConvTranspose1d>(shape, weight.values, bias.values);
  }

  // x + conv_k1(elu(conv_k3(elu(x)))), with a convolution on the shortcut in EnCodec.
  std::unique_ptr<Layer> residual(const std::string& name, int channels) const {
    const int inside = channels / options_.compress;
    auto inner = std::make_unique<Sequential>();
    inner->add(conv(name + ".block.1.conv", {.in_channels = channels,
                                             .out_channels = inside,
                                             .kernel = options_.residual_kernel,
                                             .pre = Activation::elu}));
    inner->add(conv(name + ".block.3.conv",
                    {.in_channels = inside, .out_channels = channels, .pre = Activation::elu}));
    std::unique_ptr<Layer> shortcut;
    if (options_.conv_shortcut) {
      shortcut = conv(name + ".shortcut.conv", {.in_channels = channels, .out_channels = channels});
    }
    return std::make_unique<Residual>(std::move(inner), std::move(shortcut));
  }

  // x + lstm(x)
  std::unique_ptr<Layer> lstm(const std::string& name, int channels) const {
    auto stack = std::make_unique<Sequential>();
    for (int i = 0; i < options_.lstm_layers; ++i) {
      const std::string layer = "_l" + std::to_string(i);
      const Weight ih = weights_.get(name + ".lstm.weight_ih" + layer, {4 * channels, channels});
      const Weight hh = weights_.get(name + ".lstm.weight_hh" + layer, {4 * channels, channels});
      const Weight bias_ih = weights_.get(name + ".lstm.bias_ih" + layer, {4 * channels});
      const Weight bias_hh = weights_.get(name + ".lstm.bias_hh" + layer, {4 * channels});
      stack->add<Lstm>(channels, ih.values, hh.values, bias_ih.values, bias_hh.values,
                       weights_.pack_type(ih));
    }
    return std::make_unique<Residual>(std::move(stack));
  }

 private:
  const SeanetOptions& options_;
  std::string prefix_;
  Weights& weights_;
};

}  // namespace

int seanet_hop(const SeanetOptions& options) {
  constexpr int kMaxHop = 1 << 16;
  int hop = 1;
  for (const int ratio : options.ratios) {
    if (ratio < 1 || ratio > kMaxHop / hop) {
      throw ResultError({ErrorCode::format, "seanet: expected ratios from 1 with a product of at most " +
                                                std::to_string(kMaxHop) + ", got a kernel for ratio " +
                                                std::to_string(ratio)});
    }
    hop *= ratio;
  }
  return hop;
}

std::unique_ptr<Sequential> seanet_encoder(const SeanetOptions& options, const std::string& prefix,
                                           Weights& weights) {
  const Builder build(options, prefix, weights);
  int index = 0, channels = options.filters;
  auto wide = std::make_unique<Sequential>();  // near the sample rate: long rows, small weights
  auto deep = std::make_unique<Sequential>();  // near the frame rate: few rows, large weights
  wide->add(build.conv(build.name(index++) + ".conv", {.out_channels = channels, .kernel = options.kernel}));
  const std::size_t stages = options.ratios.size();
  for (std::size_t i = 0; i < stages; ++i) {
    const int ratio = options.ratios[stages - 1 - i];
    Sequential& part = i < stages / 2 ? *wide : *deep;
    part.add(build.residual(build.name(index), channels));
    part.add(build.conv(build.name(index + 2) + ".conv", {.in_channels = channels,
                                                          .out_channels = 2 * channels,
                                                          .kernel = 2 * ratio,
                                                          .stride = ratio,
                                                          .pre = Activation::elu}));
    index += 3;
    channels *= 2;
  }
  if (options.lstm_layers) deep->add(build.lstm(build.name(index++), channels));
  deep->add(build.conv(build.name(index + 1) + ".conv", {.in_channels = channels,
                                                         .out_channels = options.dimension,
                                                         .kernel = options.last_kernel,
                                                         .pre = Activation::elu}));
  auto encoder = std::make_unique<Sequential>();
  encoder->add<Blocked>(std::move(wide), kBlockRows);
  encoder->add(std::move(deep));
  return encoder;
}

std::unique_ptr<Sequential> seanet_decoder(const SeanetOptions& options, const std::string& prefix,
                                           Weights& weights) {
  const Builder build(options, prefix, weights);
  const std::size_t stages = options.ratios.size();
  int index = 0, channels = options.filters << stages, rows = kBlockRows;
  auto deep = std::make_unique<Sequential>();
  auto wide = std::make_unique<Sequential>();
  deep->add(
      build.conv(build.name(index++) + ".conv",
                 {.in_channels = options.dimension, .out_channels = channels, .kernel = options.kernel}));
  if (options.lstm_layers) deep->add(build.lstm(build.name(index++), channels));
  for (std::size_t i = 0; i < stages; ++i) {
    const int ratio = options.ratios[i];
    Sequential& part = i < stages / 2 ? *deep : *wide;
    if (i >= stages / 2) rows = (rows + ratio - 1) / ratio;
    part.add(build.upsample(build.name(index + 1) + ".conv", {.in_channels = channels,
                                                              .out_channels = channels / 2,
                                                              .kernel = 2 * ratio,
                                                              .stride = ratio,
                                                              .pre = Activation::elu}));
    part.add(build.residual(build.name(index + 2), channels / 2));
    index += 3;
    channels /= 2;
  }
  wide->add(build.conv(build.name(index + 1) + ".conv",
                       {.in_channels = channels, .kernel = options.last_kernel, .pre = Activation::elu}));
  auto decoder = std::make_unique<Sequential>();
  decoder->add(std::move(deep));
  decoder->add<Blocked>(std::move(wide), rows);
  return decoder;
}

}  // namespace tessera
