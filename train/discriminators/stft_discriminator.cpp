#include "train/discriminators/stft_discriminator.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/autograd/conv.h"
#include "core/autograd/rearrange.h"
#include "core/error.h"
#include "train/discriminators/compression.h"

namespace tessera::train {
namespace {

constexpr float kSlope = 0.2f;

void check(const StftDiscriminatorConfig& config) {
  const auto demand = [](bool fits, const char* expected, auto got) {
    if (!fits) fail("stft_discriminator", expected, std::to_string(got));
  };
  demand(!config.windows.empty(), "windows, at least one", 0);
  for (const int window : config.windows)
    demand(window >= 16 && window <= 4096 && window % 4 == 0, "windows of 16 to 4096 samples, multiples of 4",
           window);
  demand(config.channels >= 1 && config.channels <= 1024, "1 to 1024 channels", config.channels);
  for (const int dilation : config.dilations)
    demand(dilation >= 1 && dilation <= 64, "dilations of 1 to 64", dilation);
  double before = 0;
  for (const double edge : config.bands) {
    demand(edge > before && edge <= 1, "bands that rise to at most 1", edge);
    before = edge;
  }
  demand(before > 0, "bands, at least one", before);
}

// 'Same' padding for an odd kernel [KH, KW, C, O].
ops::Conv2dOptions same(const Kernel& kernel, int dilation, int stride_w) {
  ops::Conv2dOptions options;
  options.dilation_h = dilation;
  options.stride_w = stride_w;
  options.pad_top = options.pad_bottom = static_cast<int>(kernel.weight.dim(0) - 1) / 2 * dilation;
  options.pad_left = options.pad_right = static_cast<int>(kernel.weight.dim(1) - 1) / 2;
  return options;
}

}  // namespace

StftDiscriminator::StftDiscriminator(Parameters& parameters, const std::string& name,
                                     const StftDiscriminatorConfig& config)
    : dilations_(config.dilations), compressed_(config.compressed) {
  check(config);
  const std::int64_t channels = config.channels;
  for (const int window : config.windows) {
    const std::string prefix = name + "." + std::to_string(window);
    StftOptions options;
    options.window = window;
    options.hop = window / 4;
    options.normalized = true;
    Resolution resolution{.spectrum = Stft(options)};
    int begin = 0;
    for (const double edge : config.bands) {
      Band band;
      band.begin = begin;
      band.end = edge < 1 ? static_cast<int>(edge * (window / 2)) : window / 2 + 1;
      if (band.end <= begin)
        fail("stft_discriminator", "bands of at least one bin",
             "none below " + std::to_string(edge) + " of window " + std::to_string(window));
      const std::string stem = prefix + ".band" + std::to_string(resolution.bands.size()) + ".";
      const auto add = [&](const Shape& shape) {
        band.kernels.push_back(
            Kernel::add(parameters, stem + std::to_string(band.kernels.size()), shape, kSlope));
      };
      add({3, 9, 2, channels});
      for (std::size_t i = 0; i < config.dilations.size(); ++i) add({3, 9, channels, channels});
      add({3, 3, channels, channels});
      begin = band.end;
      resolution.bands.push_back(std::move(band));
    }
    resolution.last = Kernel::add(parameters, prefix + ".last", {3, 3, channels, 1}, 1.0f);
    resolutions_.push_back(std::move(resolution));
  }
}

Judgement StftDiscriminator::judge(Tape& tape, const Tensor& x, Mode mode) const {
  Judgement judgement;
  for (const Resolution& resolution : resolutions_) {
    Tensor spectrum = resolution.spectrum(tape, x, SpectrumKind::complex);  // [B, F, bins, 2]
    if (compressed_) spectrum = compress_magnitude(tape, spectrum);
    std::vector<Tensor> features, outputs;
    for (const Band& band : resolution.bands) {
      const bool whole = band.end - band.begin == spectrum.dim(2);
      Tensor y = whole ? spectrum : ops::slice(tape, spectrum, 2, band.begin, band.end - band.begin);
      for (std::size_t i = 0; i < band.kernels.size(); ++i) {
        const Kernel kernel = band.kernels[i].in(mode);
        const bool halves = i >= 1 && i <= dilations_.size();
        ops::Conv2dOptions options = same(kernel, halves ? dilations_[i - 1] : 1, halves ? 2 : 1);
        options.post = Activation::leaky_relu;
        options.slope = kSlope;
        y = ops::conv2d(tape, y, kernel.weight, kernel.bias, options);  // [B, F, bins', channels]
        features.push_back(y);
      }
      outputs.push_back(y);
    }
    const Tensor joined = outputs.size() == 1 ? outputs[0] : ops::concat(tape, outputs, 2);
    const Kernel last = resolution.last.in(mode);
    judgement.scores.push_back(ops::conv2d(tape, joined, last.weight, last.bias, same(last, 1, 1)));
    judgement.features.push_back(std::move(features));
  }
  return judgement;
}

}  // namespace tessera::train
