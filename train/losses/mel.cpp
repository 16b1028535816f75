#include "train/losses/mel.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/autograd/op.h"
#include "core/error.h"
#include "core/exact_math.h"

namespace tessera::train {
namespace {

using Filters = std::vector<MelFilterbank::Filter>;

constexpr double kLn10 = 2.302585092994046;
constexpr double kLinearHz = 1000, kHzPerMel = 200.0 / 3, kLinearMels = 15;
// Slaney's scale from 1 kHz on: 27 mels for a factor of 6.4.
double log_step() {
  return exact_log(6.4) / 27;
}

// One chain of sums per output, bins in rising order; kRows of them side by side, which hides the latency of
// the additions.
template <int kRows>
void filter_rows(const Filters& filters, const float* x, std::int64_t bins, float* y) {
  const auto mels = static_cast<std::int64_t>(filters.size());
  for (std::int64_t m = 0; m < mels; ++m) {
    const MelFilterbank::Filter& filter = filters[static_cast<std::size_t>(m)];
    float sums[kRows] = {};
    const float* row = x + filter.begin;
    for (std::size_t i = 0; i < filter.weights.size(); ++i, ++row) {
      for (int r = 0; r < kRows; ++r) sums[r] += filter.weights[i] * row[r * bins];
    }
    for (int r = 0; r < kRows; ++r) y[r * mels + m] = sums[r];
  }
}

void spread_row(const Filters& filters, const float* gradient, std::int64_t bins, float* x) {
  std::fill_n(x, bins, 0.0f);
  for (const MelFilterbank::Filter& filter : filters) {
    const float g = *gradient++;
    float* to = x + filter.begin;
    for (std::size_t i = 0; i < filter.weights.size(); ++i) to[i] += filter.weights[i] * g;
  }
}

// Another last extent.
Shape with_last(const Shape& shape, std::int64_t extent) {
  std::vector<std::int64_t> extents;
  for (int i = 0; i + 1 < shape.rank(); ++i) extents.push_back(shape[i]);
  extents.push_back(extent);
  return Shape(extents);
}

}  // namespace

double hz_to_mel(MelScale scale, double hz) {
  if (scale == MelScale::htk) return 2595 * exact_log(1 + hz / 700) / kLn10;
  return hz < kLinearHz ? hz / kHzPerMel : kLinearMels + exact_log(hz / kLinearHz) / log_step();
}

double mel_to_hz(MelScale scale, double mel) {
  if (scale == MelScale::htk) return 700 * (exact_exp(mel * kLn10 / 2595) - 1);
  return mel < kLinearMels ? mel * kHzPerMel : kLinearHz * exact_exp((mel - kLinearMels) * log_step());
}

MelFilterbank::MelFilterbank(const MelOptions& options) : bins_(options.window / 2 + 1) {
  const char* op = "mel_filterbank";
  const double half_rate = options.sample_rate_hz / 2.0;
  const double highest_hz = options.highest_hz == 0 ? half_rate : options.highest_hz;
  if (options.sample_rate_hz < 1) fail(op, "a sample rate", std::to_string(options.sample_rate_hz) + " Hz");
  if (options.window < 2 || options.window % 2) fail(op, "an even window", std::to_string(options.window));
  if (options.mels < 1 || options.mels > bins_) {
    fail(op, "1 to " + std::to_string(bins_) + " mels", std::to_string(options.mels));
  }
  if (!(options.lowest_hz >= 0 && options.lowest_hz < highest_hz && highest_hz <= half_rate)) {
    fail(op, "lowest < highest frequency within 0 to " + std::to_string(half_rate) + " Hz",
         std::to_string(options.lowest_hz) + " to " + std::to_string(highest_hz) + " Hz");
  }
  const double lowest = hz_to_mel(options.scale, options.lowest_hz);
  const double step = (hz_to_mel(options.scale, highest_hz) - lowest) / (options.mels + 1);
  const double bin_hz = static_cast<double>(options.sample_rate_hz) / options.window;
  Filters filters(static_cast<std::size_t>(options.mels));
  for (int m = 0; m < options.mels; ++m) {
    const double left = mel_to_hz(options.scale, lowest + step * m);
    const double top = mel_to_hz(options.scale, lowest + step * (m + 1));
    const double right = mel_to_hz(options.scale, lowest + step * (m + 2));
    const double height = options.unit_area ? 2 / (right - left) : 1.0;
    Filter& filter = filters[static_cast<std::size_t>(m)];
    for (int k = 0; k < bins_; ++k) {
      const double hz = k * bin_hz;
      const double value = std::min((hz - left) / (top - left), (right - hz) / (right - top));
      if (value <= 0) continue;
      if (filter.weights.empty()) filter.begin = k;
      filter.weights.push_back(static_cast<float>(value * height));
    }
    if (filter.weights.empty()) {
      fail(op, "triangles that hold a bin, which lie " + std::to_string(bin_hz) + " Hz apart",
           std::to_string(options.mels) + " mels, one of them from " + std::to_string(left) + " to " +
               std::to_string(right) + " Hz");
    }
  }
  filters_ = std::make_shared<const Filters>(std::move(filters));
}

float MelFilterbank::weight(int mel, int bin) const {
  if (mel < 0 || mel >= mels() || bin < 0 || bin >= bins_) {
    fail("mel_filterbank",
         "a mel below " + std::to_string(mels()) + " and a bin below " + std::to_string(bins_),
         std::to_string(mel) + " and " + std::to_string(bin));
  }
  const Filter& filter = (*filters_)[static_cast<std::size_t>(mel)];
  const std::int64_t i = std::int64_t{bin} - filter.begin;
  return i < 0 || i >= static_cast<std::int64_t>(filter.weights.size())
             ? 0.0f
             : filter.weights[static_cast<std::size_t>(i)];
}

Tensor MelFilterbank::operator()(Tape& tape, const Tensor& spectrum) const {
  const std::int64_t bins = ops::channels_of("mel_filterbank", spectrum);
  if (bins != bins_) {
    fail("mel_filterbank", "a spectrum [..., " + std::to_string(bins_) + "]", spectrum.shape().str());
  }
  const std::int64_t rows = ops::rows_of(spectrum, bins);
  Tensor y = tape.make(with_last(spectrum.shape(), mels()));
  const float* in = spectrum.f32();
  float* out = y.f32();
  const std::int64_t width = mels();
  ops::for_rows(tape.pool(), rows, bins, [&, filters = filters_.get()](std::int64_t begin, std::int64_t n) {
    constexpr int kRows = 4;
    std::int64_t row = begin;
    for (; row + kRows <= begin + n; row += kRows) {
      filter_rows<kRows>(*filters, in + row * bins, bins, out + row * width);
    }
    for (; row < begin + n; ++row) filter_rows<1>(*filters, in + row * bins, bins, out + row * width);
  });
  return tape.record(std::move(y), {spectrum},
                     [&tape, filters = filters_, shape = spectrum.shape(), rows, bins, width](
                         const Tensor& gradient, InputGradients& inputs) {
                       Tensor result = tape.make(shape);
                       const float* upstream = gradient.f32();
                       float* to = result.f32();
                       ops::for_rows(tape.pool(), rows, bins, [&](std::int64_t begin, std::int64_t n) {
                         for (std::int64_t row = begin; row < begin + n; ++row) {
                           spread_row(*filters, upstream + row * width, bins, to + row * bins);
                         }
                       });
                       inputs.add(0, result);
                     });
}

}  // namespace tessera::train
