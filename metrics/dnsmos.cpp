#include "metrics/dnsmos.h"

#include <algorithm>
#include <array>
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
constexpr std::size_t kReach =
    4;  // convolutions before the first pooling; so many frames they see to each side
constexpr std::int64_t kEnd =
    2 * static_cast<std::int64_t>(kReach);  // frames that kReach rows of an end take
constexpr std::int64_t kBlock = 64;         // rows of them at once: their features stay in the cache
constexpr int kTogether = 8;                // windows: 40 MB of features
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
      Layer layer = {owned(weights, {3, 3, in, out}), owned(read(name + ".bias", {out}), {out})};
      if (i == 0) {
        model.first_ = layer;
      } else {
        model.convolutions_[i - 1] = WinogradConvolution(layer.weights, layer.bias);
      }
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

// log10 of the power of `count` frames of `sound`: [1, count, 161, 1].
Tensor Dnsmos::spectra(Tape& tape, std::span<const float> sound, std::int64_t count) const {
  Tensor frames = tape.make({count, kFrame});
  for (std::int64_t t = 0; t < count; ++t) {
    std::copy_n(sound.data() + t * kStep, kFrame, frames.f32() + t * kFrame);
  }
  const Tensor squares = ops::square(tape, ops::matmul(tape, frames, dft_));  // [count, 2 * 161]
  const Tensor powers =
      ops::add(tape, ops::slice(tape, squares, 1, 0, kBins), ops::slice(tape, squares, 1, kBins, kBins));
  constexpr float kFloor = 1e-12f, kLog10 = 0.4342944819f;
  const Tensor logs = ops::activate(tape, Activation::log, ops::at_least(tape, powers, kFloor));
  return ops::reshape(tape, ops::affine(tape, logs, kLog10), {1, count, kBins, 1});
}

// One convolution. Rows of time beyond the window are zeros; those inside it must be in x.
Tensor Dnsmos::convolve(Tape& tape, const Tensor& x, std::size_t layer, bool begins, bool ends) const {
  if (layer > 0) return convolutions_[layer - 1].apply(tape, x, begins, ends);
  ops::Conv2dOptions options;
  options.pad_top = begins ? 1 : 0;
  options.pad_bottom = ends ? 1 : 0;
  options.pad_left = options.pad_right = 1;
  options.post = Activation::leaky_relu;
  options.slope = 0;
  return ops::conv2d(tape, x, first_.weights, first_.bias, options);
}

// The layers of full resolution. Where x neither begins nor ends a window, kReach rows are missing there.
Tensor Dnsmos::fine_layers(Tape& tape, const Tensor& x, bool begins, bool ends) const {
  Tensor y = x;
  for (std::size_t i = 0; i < kReach; ++i) y = convolve(tape, y, i, begins, ends);
  return y;
}

// The same for frames that neither begin nor end a window: all rows but kReach at both ends, a block at a
// time.
Tensor Dnsmos::inner_fine_layers(Tape& tape, const Tensor& frames) const {
  const std::int64_t rows = frames.dim(1) - kEnd;
  std::vector<Tensor> blocks;
  for (std::int64_t first = 0; first < rows; first += kBlock) {
    const std::int64_t count = std::min(kBlock, rows - first) + kEnd;
    blocks.push_back(fine_layers(tape, ops::slice(tape, frames, 1, first, count), false, false));
  }
  return ops::concat(tape, blocks, 1);
}

// What follows them, for one window [1, 900, 161, 32].
std::array<double, 3> Dnsmos::rate_window(Tape& tape, const Tensor& fine) const {
  Tensor x = halved(tape, fine);
  for (std::size_t i = kReach; i < kConvolutions; ++i) {
    x = convolve(tape, x, i, true, true);
    if (i <= 5) x = halved(tape, x);
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

// Windows that follow one another, kHop apart, share the layers of full resolution, which are nearly all of
// the work; only kReach rows at both ends of a window see the zeros beyond it.
std::array<double, 3> Dnsmos::rate_windows(std::span<const float> sound, int windows,
                                           ThreadPool& pool) const {
  constexpr std::int64_t kHopFrames = static_cast<std::int64_t>(kHop) / kStep;
  Tape tape(pool);
  const Tensor frames = spectra(tape, sound, kFrames + (windows - 1) * kHopFrames);
  const Tensor shared = inner_fine_layers(tape, frames);
  std::array<double, 3> sums = {};
  for (int i = 0; i < windows; ++i) {
    const std::int64_t first = i * kHopFrames;
    const Tensor begin = fine_layers(tape, ops::slice(tape, frames, 1, first, kEnd), true, false);
    const Tensor middle = ops::slice(tape, shared, 1, first, kFrames - kEnd);
    const Tensor end =
        fine_layers(tape, ops::slice(tape, frames, 1, first + kFrames - kEnd, kEnd), false, true);
    const Tensor parts[] = {begin, middle, end};
    const std::array<double, 3> outputs = rate_window(tape, ops::concat(tape, parts, 1));
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += outputs[k];
  }
  return sums;
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
  const int all = static_cast<int>((sound.size() - kWindow) / kHop) + 1;
  while (score.windows < all) {
    const int windows = std::min(all - score.windows, kTogether);
    const auto part =
        rate_windows(sound.subspan(static_cast<std::size_t>(score.windows) * kHop), windows, pool);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
    score.windows += windows;
  }
  score.raw = {sums[0] / score.windows, sums[1] / score.windows, sums[2] / score.windows};
  score.ratings = {polynomial(score.raw.signal, -0.08397278, 1.22083953, 0.0052439),
                   polynomial(score.raw.background, -0.13166888, 1.60915514, -0.39604546),
                   polynomial(score.raw.overall, -0.06766283, 1.11546468, 0.04602535)};
  return score;
}

}  // namespace tessera::metrics
