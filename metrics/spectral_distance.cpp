#include "metrics/spectral_distance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/activation.h"
#include "core/exact_math.h"
#include "metrics/fft.h"
#include "metrics/signal.h"

namespace tessera::metrics {
namespace {

constexpr double kLn10 = 2.302585092994046;
constexpr double kMelFloor = 1e-5;

// Powers of the windowed frames of two sounds, both from one transform.
class PairSpectra {
 public:
  explicit PairSpectra(std::size_t window)
      : fft_(window), window_(window), z_(window), scratch_(window), a_(window / 2 + 1), b_(window / 2 + 1) {
    for (std::size_t i = 0; i < window; ++i) {
      window_[i] =
          0.5 - 0.5 * exact_cos(6.283185307179586 * static_cast<double>(i) / static_cast<double>(window));
    }
  }

  /// sample(i) gives sample i of the frame in both sounds, as real and imaginary part.
  template <class Sample>
  void operator()(const Sample& sample) {
    for (std::size_t i = 0; i < z_.size(); ++i) z_[i] = window_[i] * sample(i);
    fft_.forward(z_, scratch_);
    for (std::size_t k = 0; k < a_.size(); ++k) {
      const TwoBins bins = real_bins(z_, k);
      a_[k] = std::norm(bins.a);
      b_[k] = std::norm(bins.b);
    }
  }
  const std::vector<double>& a() const { return a_; }
  const std::vector<double>& b() const { return b_; }

 private:
  Fft fft_;
  std::vector<double> window_;
  std::vector<Complex> z_, scratch_;
  std::vector<double> a_, b_;
};

// Triangles over the bins of a spectrum.
struct Triangle {
  std::size_t begin = 0;
  std::vector<double> weights = {};
};

// Slaney's scale: linear to 1000 Hz, then 27 mels for a factor of 6.4.
double mel_of(double hz) {
  return hz < 1000 ? hz * 3 / 200 : 15 + exact_log(hz / 1000) / exact_log(6.4) * 27;
}
double hz_of(double mel) {
  return mel < 15 ? mel * 200 / 3 : 1000 * exact_exp((mel - 15) / 27 * exact_log(6.4));
}

// Those with a bin inside.
std::vector<Triangle> triangles(std::size_t window, int sample_rate_hz) {
  const std::size_t count = window * 5 / 32;
  const double step = mel_of(sample_rate_hz / 2.0) / static_cast<double>(count + 1);
  const double bin_hz = static_cast<double>(sample_rate_hz) / static_cast<double>(window);
  std::vector<Triangle> result;
  for (std::size_t m = 0; m < count; ++m) {
    const double left = hz_of(step * static_cast<double>(m)), top = hz_of(step * static_cast<double>(m + 1)),
                 right = hz_of(step * static_cast<double>(m + 2));
    Triangle triangle;
    for (std::size_t k = 0; k <= window / 2; ++k) {
      const double hz = static_cast<double>(k) * bin_hz;
      const double height = std::min((hz - left) / (top - left), (right - hz) / (right - top));
      if (height <= 0) continue;
      if (triangle.weights.empty()) triangle.begin = k;
      triangle.weights.push_back(height * 2 / (right - left));
    }
    if (!triangle.weights.empty()) result.push_back(std::move(triangle));
  }
  return result;
}

// Log mel bands of all frames, one after the other.
struct LogMels {
  std::vector<float> a, b;
};
LogMels log_mels(std::span<const float> reference, std::span<const float> degraded, std::size_t window,
                 int sample_rate_hz) {
  PairSpectra spectra(window);
  const std::vector<Triangle> bands = triangles(window, sample_rate_hz);
  const auto length = static_cast<std::int64_t>(reference.size());
  const auto reflected = [&](std::int64_t i) {
    return static_cast<std::size_t>(i < 0 ? -i : i < length ? i : 2 * (length - 1) - i);
  };
  const auto mel = [](const Triangle& band, const std::vector<double>& magnitudes) {
    double sum = 0;
    for (std::size_t i = 0; i < band.weights.size(); ++i) {
      sum += band.weights[i] * magnitudes[band.begin + i];
    }
    return static_cast<float>(std::max(sum, kMelFloor));
  };
  LogMels result;
  std::vector<double> a(window / 2 + 1), b(a.size());
  for (std::int64_t begin = -static_cast<std::int64_t>(window / 2);
       begin <= length - static_cast<std::int64_t>(window / 2);
       begin += static_cast<std::int64_t>(window / 4)) {
    spectra([&](std::size_t i) {
      const std::size_t at = reflected(begin + static_cast<std::int64_t>(i));
      return Complex(reference[at], degraded[at]);
    });
    for (std::size_t k = 0; k < a.size(); ++k) {
      a[k] = std::sqrt(spectra.a()[k]);
      b[k] = std::sqrt(spectra.b()[k]);
    }
    for (const Triangle& band : bands) {
      result.a.push_back(mel(band, a));
      result.b.push_back(mel(band, b));
    }
  }
  activate(Activation::log, result.a.data(), result.a.data(), result.a.size());
  activate(Activation::log, result.b.data(), result.b.data(), result.b.size());
  return result;
}

}  // namespace

Result<double> log_spectral_distance(std::span<const float> reference, std::span<const float> degraded,
                                     int sample_rate_hz) {
  if (auto good = check_pair(reference, degraded, sample_rate_hz, true); !good) return good.error();
  constexpr std::size_t kWindow = 2048, kHop = 512;
  constexpr double kFloor = 1e-10;
  PairSpectra spectra(kWindow);
  std::vector<float> ratios(kWindow / 2 + 1);
  double sum = 0;
  std::size_t frames = 0;
  for (std::size_t begin = 0; frames == 0 || begin + kWindow < reference.size() + kHop; begin += kHop) {
    spectra([&](std::size_t i) {
      return begin + i < reference.size() ? Complex(reference[begin + i], degraded[begin + i]) : Complex();
    });
    for (std::size_t k = 0; k < ratios.size(); ++k) {
      ratios[k] = static_cast<float>((spectra.a()[k] + kFloor) / (spectra.b()[k] + kFloor));
    }
    activate(Activation::log, ratios.data(), ratios.data(), ratios.size());
    double squares = 0;
    for (const float ratio : ratios) squares += static_cast<double>(ratio) * ratio;
    sum += std::sqrt(squares / static_cast<double>(ratios.size())) / kLn10;
    ++frames;
  }
  return sum / static_cast<double>(frames);
}

Result<double> mel_distance(std::span<const float> reference, std::span<const float> degraded,
                            int sample_rate_hz) {
  if (auto good = check_pair(reference, degraded, sample_rate_hz, true); !good) return good.error();
  constexpr std::size_t kWindows[] = {64, 128, 256, 512, 1024, 2048};
  constexpr std::size_t kLeast = 2048 / 2 + 1;  // what the longest window reflects
  if (reference.size() < kLeast) {
    return Error{ErrorCode::format, "the mel distance needs " + std::to_string(kLeast) + " samples, got " +
                                        std::to_string(reference.size())};
  }
  double total = 0;
  for (const std::size_t window : kWindows) {
    const LogMels mels = log_mels(reference, degraded, window, sample_rate_hz);
    double sum = 0;
    for (std::size_t i = 0; i < mels.a.size(); ++i) {
      sum += std::abs(static_cast<double>(mels.a[i]) - mels.b[i]);
    }
    total += sum / (kLn10 * static_cast<double>(mels.a.size()));
  }
  return total / std::size(kWindows);
}

}  // namespace tessera::metrics
