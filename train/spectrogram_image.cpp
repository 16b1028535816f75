#include "train/spectrogram_image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/activation.h"
#include "core/autograd/tape.h"
#include "core/error.h"
#include "train/losses/spectrogram.h"

namespace tessera::train {
namespace {

constexpr float kFloor = 1e-10f;  // of power: 100 dB below a sine of amplitude 1 in a normalized window
constexpr float kFloorDb = -100;
constexpr int kGap = 6;  // rows between two spectrograms

/// Levels in dB, [columns, rows], low frequencies first.
struct Levels {
  int columns = 0;
  int rows = 0;
  std::vector<float> db = {};

  /// The loudest point, or so much that silence is white.
  float black(double range_db) const {
    return std::max(*std::ranges::max_element(db), kFloorDb + static_cast<float>(range_db));
  }
};

Levels levels_of(std::span<const float> pcm, int hop, int window, ThreadPool& pool) {
  Tensor x = Tensor::zeros({1, static_cast<std::int64_t>(std::max<std::size_t>(1, pcm.size()))});
  // What is not finite must not spread over its neighbours: a model may be broken, and that is to be seen.
  std::ranges::transform(pcm, x.f32(),
                         [](float v) { return std::isfinite(v) ? std::clamp(v, -1e3f, 1e3f) : 0.0f; });
  StftOptions options;
  options.window = window;
  options.hop = hop;
  options.padding = ops::Padding::zero;
  options.normalized = true;
  Tape tape(pool);
  const Tensor power = Stft(options)(tape, x, SpectrumKind::power);  // [1, frames, window / 2 + 1]
  Levels levels;
  levels.columns = static_cast<int>(power.dim(1));
  levels.rows = window / 2;
  for (int column = 0; column < levels.columns; ++column) {
    const float* bins = power.f32() + column * power.dim(2);
    for (int row = 0; row < levels.rows; ++row) levels.db.push_back(bins[row] + kFloor);
  }
  activate(Activation::log, levels.db.data(), levels.db.data(), levels.db.size());
  for (float& level : levels.db) level *= 4.3429448f;  // 10 / ln 10
  return levels;
}

/// Draws from image row `top` on.
void draw(const Levels& levels, float black_db, double range_db, int top, GrayImage& image) {
  const float steps_per_db = 255.0f / static_cast<float>(range_db);
  for (int row = 0; row < levels.rows; ++row) {
    std::uint8_t* line = image.pixels.data() + static_cast<std::ptrdiff_t>(top + row) * image.width;
    for (int column = 0; column < levels.columns; ++column) {
      const float db = levels.db[static_cast<std::size_t>(column * levels.rows + levels.rows - 1 - row)];
      line[column] =
          static_cast<std::uint8_t>(std::clamp((black_db - db) * steps_per_db + 0.5f, 0.0f, 255.0f));
    }
  }
}

int hop_for(std::size_t samples, const SpectrogramOptions& options) {
  if (options.window < 2 || options.window % 2 || options.most_columns < 2 || !(options.range_db > 0)) {
    fail("spectrogram_image", "an even window, two columns or more and a range above 0",
         std::to_string(options.window) + ", " + std::to_string(options.most_columns) + " and " +
             std::to_string(options.range_db));
  }
  const std::size_t least = samples / static_cast<std::size_t>(options.most_columns) + 1;
  return static_cast<int>(std::max<std::size_t>(least, static_cast<std::size_t>(options.window) / 4));
}

GrayImage white(int width, int height) {
  GrayImage image;
  image.width = width;
  image.height = height;
  image.pixels.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 255);
  return image;
}

}  // namespace

GrayImage spectrogram_image(std::span<const float> pcm, ThreadPool& pool, const SpectrogramOptions& options) {
  const Levels levels = levels_of(pcm, hop_for(pcm.size(), options), options.window, pool);
  GrayImage image = white(levels.columns, levels.rows);
  draw(levels, levels.black(options.range_db), options.range_db, 0, image);
  return image;
}

GrayImage spectrogram_pair(std::span<const float> input, std::span<const float> decoded, ThreadPool& pool,
                           const SpectrogramOptions& options) {
  const int hop = hop_for(std::max(input.size(), decoded.size()), options);
  const Levels above = levels_of(input, hop, options.window, pool),
               below = levels_of(decoded, hop, options.window, pool);
  GrayImage image = white(std::max(above.columns, below.columns), 2 * above.rows + kGap);
  const float black = above.black(options.range_db);
  draw(above, black, options.range_db, 0, image);
  draw(below, black, options.range_db, above.rows + kGap, image);
  return image;
}

}  // namespace tessera::train
