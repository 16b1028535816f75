#include "metrics/stoi.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/exact_math.h"
#include "metrics/fft.h"
#include "metrics/resample.h"
#include "metrics/signal.h"

namespace tessera::metrics {
namespace {

constexpr int kRateHz = 10000;
constexpr std::size_t kFrame = 256, kHop = 128, kFft = 512;
constexpr std::size_t kBands = 15;
constexpr double kLowestCentreHz = 150;
constexpr std::size_t kSegment = 30;  // frames
constexpr double kRangeDb = 40;
constexpr double kTiny = 0x1p-52;

using Bands = std::array<double, kBands>;

// Hann's window without its zeros.
std::vector<double> window() {
  std::vector<double> w(kFrame);
  for (std::size_t i = 0; i < kFrame; ++i) {
    w[i] = 0.5 - 0.5 * exact_cos(6.283185307179586 * static_cast<double>(i + 1) / (kFrame + 1));
  }
  return w;
}

// Where frames begin: the one that would end with the last sample is left out, as published.
std::size_t frame_count(std::size_t samples) {
  return samples <= kFrame ? 0 : (samples - kFrame + kHop - 1) / kHop;
}

// Drops frames of both sounds in which the reference is silent; what remains is overlapped and added.
void remove_silence(std::vector<double>& reference, std::vector<double>& degraded) {
  const std::vector<double> w = window();
  const std::size_t frames = frame_count(reference.size());
  std::vector<double> levels(frames);
  for (std::size_t t = 0; t < frames; ++t) {
    double squares = 0;
    for (std::size_t i = 0; i < kFrame; ++i) {
      const double x = w[i] * reference[t * kHop + i];
      squares += x * x;
    }
    levels[t] = 2 * decibels(std::sqrt(squares) + kTiny);
  }
  const double loudest = frames ? *std::max_element(levels.begin(), levels.end()) : 0;
  std::vector<double> a, b;
  for (std::size_t t = 0; t < frames; ++t) {
    if (loudest - kRangeDb - levels[t] >= 0) continue;
    const std::size_t begin = a.empty() ? 0 : a.size() - (kFrame - kHop);
    a.resize(begin + kFrame);
    b.resize(begin + kFrame);
    for (std::size_t i = 0; i < kFrame; ++i) {
      a[begin + i] += w[i] * reference[t * kHop + i];
      b[begin + i] += w[i] * degraded[t * kHop + i];
    }
  }
  reference = std::move(a);
  degraded = std::move(b);
}

// Bins [first, last) of each third-octave band: its edges moved to the nearest bin.
struct Band {
  std::size_t first, last;
};
std::array<Band, kBands> third_octaves() {
  const auto nearest = [](double hz) {
    std::size_t best = 0;
    double distance = HUGE_VAL;
    for (std::size_t k = 0; k <= kFft / 2; ++k) {
      const double d = std::abs(static_cast<double>(k) * kRateHz / kFft - hz);
      if (d < distance) {
        distance = d;
        best = k;
      }
    }
    return best;
  };
  std::array<Band, kBands> bands = {};
  for (std::size_t j = 0; j < kBands; ++j) {
    const double twice = 2.0 * static_cast<double>(j);
    bands[j] = {nearest(kLowestCentreHz * exact_pow(2, (twice - 1) / 6)),
                nearest(kLowestCentreHz * exact_pow(2, (twice + 1) / 6))};
  }
  return bands;
}

// The envelope of each band, a row for each frame. Every sound has transforms of its own: in one shared with
// the reference, rounding would leave a trace of it where the degraded sound is silent.
std::vector<Bands> envelopes(const std::vector<double>& sound) {
  const std::vector<double> w = window();
  const std::array<Band, kBands> bands = third_octaves();
  const Fft fft(kFft);
  std::vector<Complex> z(kFft), scratch(kFft);
  std::vector<Bands> rows(frame_count(sound.size()));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    std::fill(z.begin(), z.end(), Complex());
    for (std::size_t i = 0; i < kFrame; ++i) z[i] = w[i] * sound[t * kHop + i];
    fft.forward(z, scratch);
    for (std::size_t j = 0; j < kBands; ++j) {
      double power = 0;
      for (std::size_t k = bands[j].first; k < bands[j].last; ++k) power += std::norm(z[k]);
      rows[t][j] = std::sqrt(power);
    }
  }
  return rows;
}

struct Envelopes {
  std::vector<Bands> reference, degraded;
};

double norm(std::span<const double> x) {
  return std::sqrt(energy(x));
}

// Subtracts the mean and divides by the norm that remains; zeros stay zeros.
void normalize(std::span<double> x) {
  double mean = 0;
  for (const double value : x) mean += value;
  mean /= static_cast<double>(x.size());
  for (double& value : x) value -= mean;
  const double scale = 1 / (norm(x) + kTiny);
  for (double& value : x) value *= scale;
}

double dot(std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

using Row = std::array<double, kSegment>;  // an envelope over a segment

Row row(const std::vector<Bands>& rows, std::size_t begin, std::size_t band) {
  Row x;
  for (std::size_t i = 0; i < kSegment; ++i) x[i] = rows[begin + i][band];
  return x;
}

// The mean correlation of the bands of a segment.
double segment_score(const Envelopes& e, std::size_t begin) {
  const double ceiling = 1 + exact_pow(10, 15.0 / 20);  // a signal-to-distortion ratio of -15 dB
  double sum = 0;
  for (std::size_t j = 0; j < kBands; ++j) {
    Row x = row(e.reference, begin, j), y = row(e.degraded, begin, j);
    const double level = norm(x) / (norm(y) + kTiny);
    for (std::size_t i = 0; i < kSegment; ++i) y[i] = std::min(y[i] * level, x[i] * ceiling);
    normalize(x);
    normalize(y);
    sum += dot(x, y);
  }
  return sum / kBands;
}

// A segment with its rows (bands) normalized, then its columns (frames).
std::array<Bands, kSegment> normalized_segment(const std::vector<Bands>& rows, std::size_t begin) {
  std::array<Bands, kSegment> segment;
  for (std::size_t j = 0; j < kBands; ++j) {
    Row x = row(rows, begin, j);
    normalize(x);
    for (std::size_t i = 0; i < kSegment; ++i) segment[i][j] = x[i];
  }
  for (Bands& column : segment) normalize(column);
  return segment;
}

double extended_segment_score(const Envelopes& e, std::size_t begin) {
  const std::array<Bands, kSegment> x = normalized_segment(e.reference, begin),
                                    y = normalized_segment(e.degraded, begin);
  double sum = 0;
  for (std::size_t i = 0; i < kSegment; ++i) sum += dot(x[i], y[i]);
  return sum / kSegment;
}

template <class SegmentScore>
Result<double> mean_over_segments(std::span<const float> reference, std::span<const float> degraded,
                                  int sample_rate_hz, const SegmentScore& segment_score) {
  if (auto good = check_pair(reference, degraded, sample_rate_hz, true); !good) return good.error();
  Result<std::vector<double>> x = resample(widened(reference), sample_rate_hz, kRateHz);
  if (!x) return x.error();
  Result<std::vector<double>> y = resample(widened(degraded), sample_rate_hz, kRateHz);
  if (!y) return y.error();
  if (energy(*x) == 0) return Error{ErrorCode::format, "STOI needs a reference that is not silent"};
  remove_silence(*x, *y);
  const Envelopes e = {envelopes(*x), envelopes(*y)};
  const std::size_t frames = e.reference.size();
  if (frames < kSegment) {
    return Error{
        ErrorCode::format,
        "STOI needs 30 frames (0.4 s) in which the reference is not silent, got " + std::to_string(frames)};
  }
  double sum = 0;
  for (std::size_t begin = 0; begin + kSegment <= frames; ++begin) sum += segment_score(e, begin);
  return sum / static_cast<double>(frames - kSegment + 1);
}

}  // namespace

Result<double> stoi(std::span<const float> reference, std::span<const float> degraded, int sample_rate_hz) {
  return mean_over_segments(reference, degraded, sample_rate_hz, segment_score);
}

Result<double> extended_stoi(std::span<const float> reference, std::span<const float> degraded,
                             int sample_rate_hz) {
  return mean_over_segments(reference, degraded, sample_rate_hz, extended_segment_score);
}

}  // namespace tessera::metrics
