// The mel front end and the network of the speech embedding on the ops of core/autograd, with nothing
// recorded. Both run over blocks of frames, so memory stays flat however long a recording is; blocks change
// no bit.
#include "train/teachers/speech_embedding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/autograd/conv.h"
#include "core/autograd/elementwise.h"
#include "core/autograd/rearrange.h"
#include "core/error.h"
#include "core/exact_math.h"

namespace tessera::train {
namespace {

/// One convolution (no padding in time; frequency keeps its size) and the pooling after it.
struct LayerShape {
  int kernel_t, kernel_f, inputs, outputs, pool_t = 1, pool_f = 1;
};
constexpr std::array<LayerShape, 20> kLayers{{
    {3, 3, 1, 24},         // frequency: 32
    {1, 3, 24, 24},        //
    {3, 1, 24, 24, 2, 2},  // 16
    {1, 3, 24, 48},        //
    {3, 1, 48, 48},        //
    {1, 3, 48, 48},        //
    {3, 1, 48, 48, 1, 2},  // 8
    {1, 3, 48, 72},        //
    {3, 1, 72, 72},        //
    {1, 3, 72, 72},        //
    {3, 1, 72, 72, 2, 2},  // 4
    {1, 3, 72, 96},        //
    {3, 1, 96, 96},        //
    {1, 3, 96, 96},        //
    {3, 1, 96, 96, 1, 2},  // 2
    {1, 3, 96, 96},        //
    {3, 1, 96, 96},        //
    {1, 3, 96, 96},        //
    {3, 1, 96, 96, 2, 2},  // 1
    {3, 1, 96, 96},
}};

constexpr int kBins = SpeechEmbedding::kMelWindow / 2 + 1;
constexpr float kSampleScale = 32768.0f;   // the network was trained on 16-bit units
constexpr float kWeakest = 1e-10f;         // energy below which the logarithm stops
constexpr float kFloorRange = 8.0f;        // 80 dB in units of mel: log10
constexpr std::int64_t kMelBlock = 1024;   // mel frames at a time
constexpr std::int64_t kEmbedBlock = 128;  // embeddings at a time: activations of a few MB

Tensor copy_of(const std::vector<float>& values, const Shape& shape) {
  Tensor tensor = Tensor::zeros(shape);
  std::copy(values.begin(), values.end(), tensor.f32());
  return tensor;
}

}  // namespace

Result<std::unique_ptr<SpeechEmbedding>> SpeechEmbedding::load(const std::string& path,
                                                               const SpeechEmbeddingOptions& options) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const auto file = SafeTensors::open(folder ? path + "/speech_embedding.safetensors" : path);
  if (!file) return file.error();
  return load(**file, options);
}

Result<std::unique_ptr<SpeechEmbedding>> SpeechEmbedding::load(const SafeTensors& file,
                                                               const SpeechEmbeddingOptions& options) {
  std::unique_ptr<SpeechEmbedding> teacher(new SpeechEmbedding());
  teacher->options_ = options;
  if (const auto done = teacher->load_front_end(file); !done) return done.error();
  if (const auto done = teacher->load_network(file); !done) return done.error();
  return teacher;
}

Result<void> SpeechEmbedding::load_front_end(const SafeTensors& file) {
  const auto window = file.read_f32("mel.window", {kMelWindow});
  if (!window) return window.error();
  const auto matrix = file.read_f32("mel.matrix", {kBins, kBands});
  if (!matrix) return matrix.error();

  // Only what counts is computed: 400 of 512 taps, and the 120 of 257 bins that a band reads.
  const auto counts = [](float value) { return value != 0; };
  const auto first = std::find_if(window->begin(), window->end(), counts);
  const auto last = std::find_if(window->rbegin(), std::make_reverse_iterator(first), counts).base();
  std::vector<std::size_t> bins;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const auto row = matrix->begin() + static_cast<std::ptrdiff_t>(bin * kBands);
    if (std::any_of(row, row + kBands, counts)) bins.push_back(bin);
  }
  if (first == window->end() || bins.empty()) {
    return Error{
        ErrorCode::mismatch,
        file.name() + ": expected a window and a mel matrix, got mel.window or mel.matrix of zeros only"};
  }
  first_tap_ = static_cast<int>(first - window->begin());
  const std::size_t taps = static_cast<std::size_t>(last - first), count = bins.size();

  std::array<double, kMelWindow> cosines, sines;
  for (std::size_t i = 0; i < kMelWindow; ++i) {
    const double turn = 6.283185307179586 * static_cast<double>(i) / kMelWindow;
    cosines[i] = exact_cos(turn);
    sines[i] = exact_sin(turn);
  }
  basis_ = Tensor::zeros({static_cast<std::int64_t>(taps), 1, static_cast<std::int64_t>(2 * count)});
  for (std::size_t tap = 0; tap < taps; ++tap) {
    const std::size_t n = static_cast<std::size_t>(first_tap_) + tap;
    const double weight = (*window)[n];
    for (std::size_t i = 0; i < count; ++i) {
      float* row = basis_.f32() + tap * 2 * count;
      row[i] = static_cast<float>(weight * cosines[bins[i] * n % kMelWindow]);
      row[count + i] = static_cast<float>(-weight * sines[bins[i] * n % kMelWindow]);
    }
  }
  bands_ = Tensor::zeros({static_cast<std::int64_t>(2 * count), kBands});
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t row : {i, count + i}) {
      std::copy_n(matrix->data() + bins[i] * kBands, kBands, bands_.f32() + row * kBands);
    }
  }
  return {};
}

Result<void> SpeechEmbedding::load_network(const SafeTensors& file) {
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    const LayerShape& layer = kLayers[i];
    const std::string name = std::string("conv") + (i < 10 ? "0" : "") + std::to_string(i);
    const Shape shape{layer.kernel_t, layer.kernel_f, layer.inputs, layer.outputs};
    const auto weight = file.read_f32(name + ".weight", shape);
    if (!weight) return weight.error();
    Layer loaded;
    loaded.weight = copy_of(*weight, shape);
    if (i + 1 < kLayers.size()) {
      const auto bias = file.read_f32(name + ".bias", {layer.outputs});
      if (!bias) return bias.error();
      loaded.bias = copy_of(*bias, {layer.outputs});
    }
    layers_.push_back(loaded);
  }
  return {};
}

Tensor SpeechEmbedding::mel(std::span<const float> pcm, ThreadPool& pool) const {
  if (pcm.size() < kMelWindow) {
    fail("speech_embedding mel", "at least 512 samples", std::to_string(pcm.size()));
  }
  const std::int64_t frames = (static_cast<std::int64_t>(pcm.size()) - kMelWindow) / kMelHop + 1;
  const std::int64_t taps = basis_.dim(0);
  Tensor out = Tensor::zeros({frames, kBands});
  Tape tape(pool);
  for (std::int64_t begin = 0; begin < frames; begin += kMelBlock) {
    const std::int64_t count = std::min(kMelBlock, frames - begin);
    Tensor x = tape.make({1, (count - 1) * kMelHop + taps, 1});
    const float* source = pcm.data() + begin * kMelHop + first_tap_;
    std::transform(source, source + x.size(), x.f32(), [](float sample) { return sample * kSampleScale; });
    const Tensor spectrum = ops::conv1d(tape, x, basis_, {}, {.stride = kMelHop});  // [1, count, 2 bins]
    const Tensor energy = ops::matmul(tape, ops::square(tape, spectrum), bands_);   // [1, count, 32]
    const Tensor log = ops::activate(tape, Activation::log, ops::at_least(tape, energy, kWeakest));
    // 10 log10(energy) dB / 10 + 2
    const Tensor block = ops::affine(tape, log, 0.43429448190325176f, 2.0f);
    std::copy_n(block.f32(), block.size(), out.f32() + begin * kBands);
  }
  if (options_.floor) {
    const float floor = *std::max_element(out.f32(), out.f32() + out.size()) - kFloorRange;
    for (float* value = out.f32(); value != out.f32() + out.size(); ++value) *value = std::max(*value, floor);
  }
  return out;
}

Tensor SpeechEmbedding::embed(const Tensor& mel, ThreadPool& pool) const {
  if (mel.shape().rank() != 2 || mel.dim(0) < kContext || mel.dim(1) != kBands || mel.dtype() != DType::f32) {
    fail("speech_embedding embed", "mel [76 or more, 32] in f32",
         mel.shape().str() + " in " + name_of(mel.dtype()));
  }
  const std::int64_t rows = (mel.dim(0) - kContext) / kContextHop + 1;
  Tensor out = Tensor::zeros({rows, kDimension});
  Tape tape(pool);
  for (std::int64_t begin = 0; begin < rows; begin += kEmbedBlock) {
    const std::int64_t count = std::min(kEmbedBlock, rows - begin);
    Tensor x = tape.make({1, (count - 1) * kContextHop + kContext, kBands, 1});
    std::copy_n(mel.f32() + begin * kContextHop * kBands, x.size(), x.f32());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const LayerShape& layer = kLayers[i];
      ops::Conv2dOptions options;
      options.pad_left = options.pad_right = layer.kernel_f / 2;
      if (i + 1 < layers_.size()) {
        options.post = Activation::leaky_relu;
        options.slope = 0.2f;
      }
      x = ops::conv2d(tape, x, layers_[i].weight, layers_[i].bias, options);
      if (i + 1 < layers_.size()) x = ops::at_least(tape, x, -0.4f);
      if (layer.pool_t > 1) x = ops::max_pool(tape, x, 1, layer.pool_t, layer.pool_t);
      if (layer.pool_f > 1) x = ops::max_pool(tape, x, 2, layer.pool_f, layer.pool_f);
    }  // [1, count, 1, 96]
    std::copy_n(x.f32(), count * kDimension, out.f32() + begin * kDimension);
  }
  return out;
}

Tensor SpeechEmbedding::features(std::span<const float> recording, std::int64_t begin, std::int64_t length,
                                 ThreadPool& pool) const {
  const std::int64_t samples = static_cast<std::int64_t>(recording.size());
  if (length < 0) fail("speech_embedding features", "a length of 0 or more", std::to_string(length));
  if (length == 0) return Tensor::zeros({0, kDimension});
  const std::int64_t rows = (length + kFrame - 1) / kFrame;
  std::vector<float> context(static_cast<std::size_t>((rows - 1) * kFrame + kWindow));
  const std::int64_t start = begin - kLead;  // of the context, in the recording
  const std::int64_t end = start + static_cast<std::int64_t>(context.size());
  const std::int64_t from = std::max<std::int64_t>(start, 0), to = std::min(end, samples);
  if (from < to)
    std::copy(recording.begin() + from, recording.begin() + to, context.begin() + (from - start));
  return embed(mel(context, pool), pool);
}

Result<Tensor> SpeechEmbedding::features(const std::string& name, std::span<const float> pcm,
                                         ThreadPool& pool) const {
  const auto bad = std::find_if(pcm.begin(), pcm.end(), [](float sample) { return !std::isfinite(sample); });
  if (bad != pcm.end()) {
    return Error{ErrorCode::format, name + ": expected finite samples, got " + std::to_string(*bad) +
                                        " at sample " + std::to_string(bad - pcm.begin())};
  }
  return features(pcm, 0, static_cast<std::int64_t>(pcm.size()), pool);
}

}  // namespace tessera::train
