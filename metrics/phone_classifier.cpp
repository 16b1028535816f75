#include "metrics/phone_classifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <sstream>

#include "core/autograd/conv.h"
#include "core/autograd/elementwise.h"
#include "core/autograd/rearrange.h"
#include "core/exact_math.h"
#include "core/hash.h"
#include "core/spectral.h"
#include "metrics/fft.h"
#include "metrics/signal.h"
#include "models/builtin.h"

namespace tessera::metrics {
namespace {

constexpr int kWindow = 400;
constexpr std::size_t kFft = 512;
constexpr double kLowestHz = 60, kHighestHz = 7800;
constexpr std::int64_t kWidth = 160;
constexpr float kSlope = 0.1f;  // of leaky ReLU
constexpr std::int64_t kBlock = 2000;

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

double mel_of(double hz) {
  return exact_log(1 + hz / 700);
}

/// A triangle over bins [begin, begin + weights.size()).
struct Band {
  std::size_t begin = 0;
  std::vector<double> weights = {};
};

std::vector<Band> make_bands() {
  const double low = mel_of(kLowestHz), step = (mel_of(kHighestHz) - low) / (kPhoneBands + 1);
  const auto edge = [&](int i) { return 700 * (exact_exp(low + step * i) - 1); };
  std::vector<Band> bands(kPhoneBands);
  for (int i = 0; i < kPhoneBands; ++i) {
    Band& band = bands[to_size(i)];
    const double left = edge(i), middle = edge(i + 1), right = edge(i + 2);
    double sum = 0;
    for (std::size_t k = 0; k <= kFft / 2; ++k) {
      const double hz = static_cast<double>(k) * kPhoneRateHz / static_cast<double>(kFft);
      const double weight = std::min((hz - left) / (middle - left), (right - hz) / (right - middle));
      if (weight <= 0) continue;
      if (band.weights.empty()) band.begin = k;
      band.weights.push_back(weight);
      sum += weight;
    }
    for (double& weight : band.weights) weight /= sum;
  }
  return bands;
}

struct FrontEnd {
  Fft fft{kFft};
  std::vector<float> window = hann_window(kWindow);
  std::vector<Band> bands = make_bands();
};

const FrontEnd& front_end() {
  static const FrontEnd made;
  return made;
}

}  // namespace

std::vector<float> phone_mel_powers(std::span<const float> sound) {
  const auto& [fft, window, bands] = front_end();
  const auto samples = static_cast<std::int64_t>(sound.size()), frames = samples / kPhoneHop;
  std::vector<float> powers(to_size(frames * kPhoneBands));
  std::vector<Complex> x(kFft), scratch(kFft);
  const auto sample = [&](std::int64_t frame, std::int64_t n) {
    const std::int64_t at = frame * kPhoneHop + (kPhoneHop - kWindow) / 2 + n;
    return frame < frames && at >= 0 && at < samples ? static_cast<double>(sound[to_size(at)]) : 0.0;
  };
  for (std::int64_t frame = 0; frame < frames; frame += 2) {  // two frames in one transform
    std::fill(x.begin(), x.end(), Complex());
    for (int n = 0; n < kWindow; ++n) {
      const double factor = window[to_size(n)];
      x[to_size(n)] = Complex(factor * sample(frame, n), factor * sample(frame + 1, n));
    }
    fft.forward(x, scratch);
    std::array<std::array<double, kFft / 2 + 1>, 2> spectra;
    for (std::size_t k = 0; k <= kFft / 2; ++k) {
      const TwoBins bins = real_bins(x, k);
      spectra[0][k] = bins.a.real() * bins.a.real() + bins.a.imag() * bins.a.imag();
      spectra[1][k] = bins.b.real() * bins.b.real() + bins.b.imag() * bins.b.imag();
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(2, frames - frame); ++i) {
      for (std::size_t b = 0; b < bands.size(); ++b) {
        double power = 0;
        for (std::size_t k = 0; k < bands[b].weights.size(); ++k) {
          power += bands[b].weights[k] * spectra[to_size(i)][bands[b].begin + k];
        }
        powers[to_size((frame + i) * kPhoneBands) + b] = static_cast<float>(power);
      }
    }
  }
  return powers;
}

std::vector<float> phone_features(std::span<const float> powers) {
  constexpr std::size_t kMargin = kPhoneContext * kPhoneBands;
  std::vector<float> features(powers.size() + 2 * kMargin);
  if (powers.empty()) return features;
  double mean = 0;
  for (const float power : powers) mean += power;
  mean /= static_cast<double>(powers.size());
  const double floor = 1e-5 * mean + 1e-30;
  std::array<double, kPhoneBands> sums = {};
  std::vector<double> logs(powers.size());
  for (std::size_t i = 0; i < powers.size(); ++i) {
    logs[i] = exact_log(powers[i] + floor);
    sums[i % kPhoneBands] += logs[i];
  }
  const double frames = static_cast<double>(powers.size()) / kPhoneBands;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    features[kMargin + i] = static_cast<float>(0.5 * (logs[i] - sums[i % kPhoneBands] / frames));
  }
  return features;
}

std::vector<PhoneLayer> phone_layers(int classes) {
  std::vector<PhoneLayer> layers;
  const auto add = [&](const std::string& name, std::int64_t taps, std::int64_t in, std::int64_t out,
                       int dilation) {
    PhoneLayer& layer = layers.emplace_back();
    layer.name = name;
    layer.shape = {taps, in, out};
    layer.dilation = dilation;
  };
  add("conv0", 5, kPhoneBands, kWidth, 1);
  add("conv1", 5, kWidth, kWidth, 1);
  add("conv2", 5, kWidth, kWidth, 2);
  add("conv3", 3, kWidth, kWidth, 2);
  add("output", 1, kWidth, classes, 1);
  return layers;
}

Tensor phone_logits(Tape& tape, Tensor x, std::span<const PhoneLayer> layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PhoneLayer& layer = layers[i];
    ops::Conv1dOptions options;
    options.dilation = layer.dilation;
    if (i + 1 < layers.size()) {
      options.post = Activation::leaky_relu;
      options.slope = kSlope;
    }
    Tensor y = ops::conv1d(tape, x, layer.weights, layer.bias, options);
    if (i > 0 && i + 1 < layers.size()) {
      y = ops::add(tape, y, ops::slice(tape, x, 1, (x.dim(1) - y.dim(1)) / 2, y.dim(1)));
    }
    x = y;
  }
  return x;
}

Result<PhoneClassifier> PhoneClassifier::builtin() {
  const auto file = SafeTensors::parse(builtin_phone_classifier(), "the built-in phone classifier");
  if (!file) return file.error();
  return load(**file);
}

Result<PhoneClassifier> PhoneClassifier::load(const SafeTensors& file) {
  PhoneClassifier classifier;
  std::istringstream names{std::string(file.metadata("phones").value_or(""))};
  for (std::string name; names >> name;) classifier.phones_.push_back(name);
  if (classifier.phones_.size() < 2) {
    return Error{ErrorCode::mismatch, file.name() + ": expected names of phones under \"phones\", got " +
                                          std::to_string(classifier.phones_.size())};
  }
  classifier.hash_ = hex(content_hash(file.bytes()));
  classifier.layers_ = phone_layers(classifier.classes());
  for (PhoneLayer& layer : classifier.layers_) {
    const auto read = [&](const std::string& name, const Shape& shape, Tensor& place) -> Result<void> {
      const auto values = file.read_f32(name, shape);
      if (!values) return values.error();
      place = Tensor::zeros(shape);
      std::copy(values->begin(), values->end(), place.f32());
      return {};
    };
    if (auto done = read(layer.name + ".weight", layer.shape, layer.weights); !done) return done.error();
    if (auto done = read(layer.name + ".bias", {layer.shape[2]}, layer.bias); !done) return done.error();
  }
  return classifier;
}

Result<Tensor> PhoneClassifier::logits(std::span<const float> sound, int sample_rate_hz,
                                       ThreadPool& pool) const {
  if (auto good = check_sound(sound, sample_rate_hz, "sound"); !good) return good.error();
  if (sample_rate_hz != kPhoneRateHz) {
    return Error{ErrorCode::usage,
                 "the phone classifier hears sound at 16000 Hz, got " + std::to_string(sample_rate_hz)};
  }
  if (sound.size() < kPhoneHop) {
    return Error{ErrorCode::format,
                 "expected at least 160 samples to name a phone, got " + std::to_string(sound.size())};
  }
  const std::vector<float> features = phone_features(phone_mel_powers(sound));
  const auto frames = static_cast<std::int64_t>(sound.size()) / kPhoneHop;
  Tensor all = Tensor::zeros({frames, classes()});
  Tape tape(pool);
  for (std::int64_t begin = 0; begin < frames; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, frames - begin), rows = count + 2 * kPhoneContext;
    Tensor x = tape.make({1, rows, kPhoneBands});
    std::copy_n(features.begin() + begin * kPhoneBands, rows * kPhoneBands, x.f32());
    const Tensor y = phone_logits(tape, x, layers_);
    std::copy_n(y.f32(), y.size(), all.f32() + begin * classes());
  }
  return all;
}

}  // namespace tessera::metrics
