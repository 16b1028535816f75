#include "core/spectral_smoother.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/norm.h"

namespace tessera {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kMostWindows = 8;
// Added to magnitudes before their logarithm: below the last bit of 16-bit sound in a window.
constexpr double kSilence = 1e-4;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

void expect_between(const char* what, int lowest, int highest, int value) {
  if (value >= lowest && value <= highest) return;
  fail("spectral_smoother",
       std::string(what) + " from " + std::to_string(lowest) + " to " + std::to_string(highest),
       std::to_string(value));
}

const SpectralSmootherOptions& checked(const SpectralSmootherOptions& options) {
  expect_between("a hop", 1, 1 << 13, options.hop);
  expect_between("bins", 1, options.hop, options.bins);
  expect_between("windows before", 0, kMostWindows, options.before);
  expect_between("windows after", 0, kMostWindows, options.after);
  return options;
}

// A Hann kernel around the window itself, as far as it is cut off on neither side; its sum 1.
std::vector<double> kernel(const SpectralSmootherOptions& options) {
  const int most = std::max(options.before, options.after) + 1;
  std::vector<double> taps;
  double sum = 0;
  for (int d = -options.before; d <= options.after; ++d) {
    taps.push_back(0.5 + 0.5 * exact_cos(kPi * d / most));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

// Rows of cosines, then of negative sines, under the window at(n); `one` scales all but the first row of
// each.
template <class Window>
std::vector<float> dft(const SpectralSmootherOptions& options, double first, double one, const Window& at) {
  const int length = 2 * options.hop;
  std::vector<float> table;
  for (const bool sine : {false, true}) {
    for (int k = 0; k < options.bins; ++k) {
      for (int n = 0; n < length; ++n) {
        const double turn = 2 * kPi * (static_cast<std::int64_t>(k) * n % length) / length;
        table.push_back(
            static_cast<float>((k ? one : first) * at(n) * (sine ? -exact_sin(turn) : exact_cos(turn))));
      }
    }
  }
  return table;
}

void add_scaled(float* y, const float* x, float scale, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += scale * x[i];
}

}  // namespace

SpectralSmoother::SpectralSmoother(const SpectralSmootherOptions& options)
    : options_(checked(options)),
      past_((options.before + 1) * options.hop),
      future_((options.after + 1) * options.hop),
      taps_(kernel(options)),
      window_({.channels = 1, .extent = past_ + options.hop + future_, .stride = options.hop}) {
  const int length = 2 * options.hop;
  const auto hann = [&](int n) { return 0.5 - 0.5 * exact_cos(2 * kPi * n / length); };
  analysis_ = dft(options, 1, 1, hann);
  // Back, under the same window, divided by the sum of both squares of the windows that overlap.
  synthesis_ = dft(options, 1.0 / length, 2.0 / length, [&](int n) {
    const double own = hann(n), other = hann((n + options.hop) % length);
    return own / (own * own + other * other);
  });
}

void SpectralSmoother::analyze(std::span<const float> sound, float* spectra, double* logs) const {
  const std::size_t hop = to_size(options_.hop), bins = to_size(options_.bins),
                    count = sound.size() / hop - 1;
  for (std::size_t i = 0; i < count; ++i) {
    float* spectrum = spectra + i * 2 * bins;
    for (std::size_t k = 0; k < 2 * bins; ++k) {
      spectrum[k] = fixed_dot(sound.data() + i * hop, row(analysis_, k), 2 * hop);
    }
    for (std::size_t k = 0; k < bins; ++k) {
      const double real = spectrum[k], imaginary = spectrum[bins + k];
      logs[i * bins + k] = exact_log(std::sqrt(real * real + imaginary * imaginary) + kSilence);
    }
  }
}

// The mean logarithm of neighbours less its own, `logs` being the first neighbour's.
double SpectralSmoother::change(const double* logs) const {
  double mean = 0;
  for (std::size_t d = 0; d < taps_.size(); ++d) mean += taps_[d] * logs[d * to_size(options_.bins)];
  return mean - logs[to_size(options_.before) * to_size(options_.bins)];
}

void SpectralSmoother::smooth(const float* spectra, const double* logs, std::size_t hops,
                              float* changes) const {
  const std::size_t bins = to_size(options_.bins);
  for (std::size_t i = 0; i < changed(hops); ++i) {
    const float* spectrum = spectra + (i + to_size(options_.before)) * 2 * bins;
    for (std::size_t k = 0; k < bins; ++k) {
      const float gain = static_cast<float>(exact_exp(change(logs + i * bins + k)) - 1);
      changes[i * 2 * bins + k] = gain * spectrum[k];
      changes[i * 2 * bins + bins + k] = gain * spectrum[bins + k];
    }
  }
}

void SpectralSmoother::combine(std::span<const float> sound, const float* changes, float* y) const {
  const std::size_t hop = to_size(options_.hop), size = spectrum_size();
  const std::size_t hops = (sound.size() - to_size(past_ + future_)) / hop;
  std::copy_n(sound.data() + past_, hops * hop, y);
  for (std::size_t i = 0; i < hops; ++i) {
    const float* older =
        changes + i * size;  // of the window that ends with this hop; the next begins with it
    for (std::size_t k = 0; k < size; ++k) {
      add_scaled(y + i * hop, row(synthesis_, k) + hop, older[k], hop);
      add_scaled(y + i * hop, row(synthesis_, k), older[size + k], hop);
    }
  }
}

void SpectralSmoother::combine_gradient(const float* dy, std::size_t hops, std::span<float> dsound,
                                        float* dchanges) const {
  const std::size_t hop = to_size(options_.hop), size = spectrum_size();
  for (std::size_t n = 0; n < hops * hop; ++n) dsound[to_size(past_) + n] += dy[n];
  for (std::size_t i = 0; i < changed(hops); ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      const float* own = row(synthesis_, k);
      float sum = 0;
      if (i > 0) sum += fixed_dot(dy + (i - 1) * hop, own, hop);
      if (i < hops) sum += fixed_dot(dy + i * hop, own + hop, hop);
      dchanges[i * size + k] = sum;
    }
  }
}

void SpectralSmoother::analyze_gradient(const float* spectra, const double* logs, const float* dchanges,
                                        std::size_t hops, std::span<float> dsound) const {
  const std::size_t hop = to_size(options_.hop), bins = to_size(options_.bins);
  std::vector<double> dlogs(windows(hops) * bins);
  std::vector<float> dspectra(windows(hops) * 2 * bins);
  for (std::size_t i = 0; i < changed(hops); ++i) {
    const std::size_t center = i + to_size(options_.before);
    for (std::size_t k = 0; k < bins; ++k) {
      const double gain = exact_exp(change(logs + i * bins + k));
      const float *x = spectra + center * 2 * bins + k, *dc = dchanges + i * 2 * bins + k;
      float* dx = dspectra.data() + center * 2 * bins + k;
      dx[0] += static_cast<float>(gain - 1) * dc[0];
      dx[bins] += static_cast<float>(gain - 1) * dc[bins];
      const double dchange =
          gain * (static_cast<double>(x[0]) * dc[0] + static_cast<double>(x[bins]) * dc[bins]);
      for (std::size_t d = 0; d < taps_.size(); ++d) dlogs[(i + d) * bins + k] += taps_[d] * dchange;
      dlogs[center * bins + k] -= dchange;
    }
  }
  for (std::size_t i = 0; i < windows(hops); ++i) {
    const float* x = spectra + i * 2 * bins;
    float* dx = dspectra.data() + i * 2 * bins;
    for (std::size_t k = 0; k < bins; ++k) {
      const double real = x[k], imaginary = x[bins + k];
      const double magnitude = std::sqrt(real * real + imaginary * imaginary);
      if (magnitude == 0) continue;
      const double slope = dlogs[i * bins + k] / ((magnitude + kSilence) * magnitude);
      dx[k] += static_cast<float>(slope * real);
      dx[bins + k] += static_cast<float>(slope * imaginary);
    }
    for (std::size_t k = 0; k < 2 * bins; ++k) {
      add_scaled(dsound.data() + i * hop, row(analysis_, k), dx[k], 2 * hop);
    }
  }
}

int SpectralSmoother::max_rows(int rows) const {
  return window_.max_outputs(rows) * options_.hop;
}

std::size_t SpectralSmoother::workspace_bytes(int streams, int rows) const {
  const std::size_t hops = to_size(window_.max_outputs(rows)), bins = to_size(options_.bins);
  return Workspace::padded(to_size(streams) * sizeof(CausalWindow::Run)) +
         Workspace::padded(to_size(streams) * sizeof(int)) +
         to_size(streams) * Workspace::padded(to_size(window_.run_rows(rows)) * sizeof(float)) +
         Workspace::padded(windows(hops) * 2 * bins * sizeof(float)) +
         Workspace::padded(windows(hops) * bins * sizeof(double)) +
         Workspace::padded(changed(hops) * 2 * bins * sizeof(float)) +
         sequences_bytes(streams, max_rows(rows), 1);
}

Sequences SpectralSmoother::step(Sequences x, States states, StepContext& context) const {
  if (x.channels() != 1) fail("spectral_smoother", "x [samples, 1]", x.rows.shape().str());
  Workspace& workspace = context.workspace;
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = workspace.mark();
  const auto runs = workspace.array<CausalWindow::Run>(side, x.lengths.size());
  const auto lengths = workspace.array<int>(side, x.lengths.size());
  const float* rows = x.rows.f32();
  std::size_t most = 0;
  for (std::size_t i = 0; i < x.lengths.size(); ++i) {
    const auto memory = workspace.array<float>(side, to_size(window_.run_rows(x.lengths[i])));
    runs[i] = window_.advance(rows, x.lengths[i], x.ends[i], states.of(static_cast<int>(i)), memory.data());
    lengths[i] = runs[i].outputs * options_.hop;
    most = std::max(most, to_size(runs[i].outputs));
    rows += x.lengths[i];
  }
  Sequences y = allocate_sequences(workspace, Workspace::other(side), lengths, x.ends, 1);
  const auto spectra = workspace.array<float>(side, windows(most) * spectrum_size());
  const auto logs = workspace.array<double>(side, windows(most) * to_size(options_.bins));
  const auto changes = workspace.array<float>(side, changed(most) * spectrum_size());
  float* out = y.rows.f32();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].outputs == 0) continue;
    const std::span<const float> sound(runs[i].rows, to_size(past_ + lengths[i] + future_));
    analyze(sound, spectra.data(), logs.data());
    smooth(spectra.data(), logs.data(), to_size(runs[i].outputs), changes.data());
    combine(sound, changes.data(), out);
    out += lengths[i];
  }
  workspace.release(side, mark);
  return y;
}

}  // namespace tessera
