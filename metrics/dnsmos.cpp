#include "metrics/dnsmos.h"

#include <algorithm>
#include <vector>

#include "core/activation.h"
#include "core/autograd/conv.h"
#include "core/autograd/elementwise.h"
#include "core/autograd/rearrange.h"
#include "core/safetensors.h"
#include "metrics/signal.h"

namespace tessera::metrics {
namespace {

constexpr std::int64_t kFrame = 320, kStep = 160, kBins = 161;
constexpr std::int64_t kFrames = (static_cast<std::int64_t>(Dnsmos::kWindow) - kFrame) / kStep + 1;  // 900
constexpr std::int64_t kChannels[] = {1, 128, 64, 64, 32, 32, 32, 64};  // before and after the convolutions
constexpr std::int64_t kFeatures[] = {64, 128, 64, 3};                  // likewise, dense layers

Tensor owned(const std::vector<float>& values, const Shape& shape) {
  Tensor tensor = Tensor::zeros(shape);
  std::copy(values.begin(), values.end(), tensor.f32());
  return tensor;
}

// [rows, columns, inner] -> [inner, columns, rows]: weights come with outputs first, ops want them last.
std::vector<float> outputs_last(const std::vector<float>& w, std::size_t rows, std::size_t columns,
                                std::size_t inner) {
  std::vector<float> result(w.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t i = 0; i < inner; ++i) {
        result[(i * columns + c) * rows + r] = w[(r * columns + c) * inner + i];
      }
    }
  }
  return result;
}

Tensor halved(Tape& tape, const Tensor& x) {
  return ops::max_pool(tape, ops::max_pool(tape, x, 1, 2, 2), 2, 2, 2);
}

double polynomial(double x, double square, double slope, double constant) {
  return (square * x + slope) * x + constant;
}

}  // namespace

Result<Dnsmos> Dnsmos::load(const std::string& path) {
  auto file = SafeTensors::open(path);
  if (!file) return file.error();
  try {
    const auto read = [&](const std::string& name, const Shape& shape) {
      return (*file)->read_f32(name, shape).value();
    };
    Dnsmos model;
    model.dft_ = Tensor::zeros({kFrame, 2 * kBins});
    for (const bool imaginary : {false, true}) {
      const auto rows = read(imaginary ? "dft.imag" : "dft.real", {kBins, kFrame});
      for (std::int64_t k = 0; k < kBins; ++k) {
        for (std::int64_t n = 0; n < kFrame; ++n) {
          model.dft_.f32()[n * 2 * kBins + (imaginary ? kBins : 0) + k] =
              rows[static_cast<std::size_t>(k * kFrame + n)];
        }
      }
    }
    for (std::size_t i = 0; i < kConvolutions; ++i) {
      const std::int64_t in = kChannels[i], out = kChannels[i + 1];
      const std::string name = "conv" + std::to_string(i);
      const auto weights = outputs_last(read(name + ".weight", {out, in, 3, 3}),
                                        static_cast<std::size_t>(out), static_cast<std::size_t>(in), 9);
      model.convolutions_[i].weights = owned(weights, {3, 3, in, out});
      model.convolutions_[i].bias = owned(read(name + ".bias", {out}), {out});
    }
    for (std::size_t i = 0; i < kDense; ++i) {
      const std::int64_t in = kFeatures[i], out = kFeatures[i + 1];
      const std::string name = "dense" + std::to_string(i);
      const auto weights = outputs_last(read(name + ".weight", {out, in}), static_cast<std::size_t>(out), 1,
                                        static_cast<std::size_t>(in));
      model.dense_[i].weights = owned(weights, {in, out});
      model.dense_[i].bias = owned(read(name + ".bias", {out}), {out});
    }
    return model;
  } catch (const ResultError& error) {
    return error.error();
  }
}

std::array<double, 3> Dnsmos::rate_window(std::span<const float> window, ThreadPool& pool) const {
  Tape tape(pool);
  Tensor frames = tape.make({kFrames, kFrame});
  for (std::int64_t t = 0; t < kFrames; ++t) {
    std::copy_n(window.data() + t * kStep, kFrame, frames.f32() + t * kFrame);
  }
  const Tensor spectra = ops::square(tape, ops::matmul(tape, frames, dft_));  // [900, 2 * 161]
  const Tensor powers =
      ops::add(tape, ops::slice(tape, spectra, 1, 0, kBins), ops::slice(tape, spectra, 1, kBins, kBins));
  constexpr float kFloor = 1e-12f, kLog10 = 0.4342944819f;
  Tensor x = ops::activate(tape, Activation::log, ops::at_least(tape, powers, kFloor));
  x = ops::reshape(tape, ops::affine(tape, x, kLog10), {1, kFrames, kBins, 1});
  ops::Conv2dOptions options;
  options.pad_top = options.pad_bottom = options.pad_left = options.pad_right = 1;
  options.post = Activation::leaky_relu;
  options.slope = 0;
  for (std::size_t i = 0; i < kConvolutions; ++i) {
    x = ops::conv2d(tape, x, convolutions_[i].weights, convolutions_[i].bias, options);
    if (i >= 3 && i <= 5) x = halved(tape, x);
  }
  // [1, 112, 20, 64]: the largest value of each channel
  const std::int64_t channels = x.dim(3);
  Tensor largest = tape.zeros({1, channels});  // what ReLU leaves is not negative
  for (std::int64_t i = 0; i < x.size(); ++i) {
    float& value = largest.f32()[i % channels];
    value = std::max(value, x.f32()[i]);
  }
  x = largest;
  for (std::size_t i = 0; i < kDense; ++i) {
    x = ops::matmul(tape, x, dense_[i].weights, dense_[i].bias);
    if (i + 1 < kDense) x = ops::leaky_relu(tape, x, 0);
  }
  return {x.f32()[0], x.f32()[1], x.f32()[2]};
}

Result<DnsmosScore> Dnsmos::score(std::span<const float> sound, int sample_rate_hz, ThreadPool& pool) const {
  if (auto good = check_sound(sound, sample_rate_hz, "sound"); !good) return good.error();
  if (sample_rate_hz != kRateHz) {
    return Error{ErrorCode::usage, "DNSMOS rates sound at 16000 Hz, got " + std::to_string(sample_rate_hz)};
  }
  std::vector<float> repeated;
  if (sound.size() < kWindow) {
    for (std::size_t i = 0; i < kWindow; ++i) repeated.push_back(sound[i % sound.size()]);
    sound = repeated;
  }
  DnsmosScore score;
  std::array<double, 3> sums = {};
  for (std::size_t begin = 0; begin + kWindow <= sound.size(); begin += kHop) {
    const std::array<double, 3> outputs = rate_window(sound.subspan(begin, kWindow), pool);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += outputs[i];
    ++score.windows;
  }
  score.raw = {sums[0] / score.windows, sums[1] / score.windows, sums[2] / score.windows};
  score.ratings = {polynomial(score.raw.signal, -0.08397278, 1.22083953, 0.0052439),
                   polynomial(score.raw.background, -0.13166888, 1.60915514, -0.39604546),
                   polynomial(score.raw.overall, -0.06766283, 1.11546468, 0.04602535)};
  return score;
}

}  // namespace tessera::metrics
