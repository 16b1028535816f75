#include "train/losses/spectral_loss.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "train/losses/terms.h"

namespace tessera::train {
namespace {

constexpr float kPerLn10 = 0.434294482f;  // log10 x = ln x / ln 10

Stft make_stft(int window, bool normalized) {
  StftOptions options;
  options.window = window;
  options.hop = window / 4;
  options.normalized = normalized;
  return Stft(options);
}

Tensor log_of(Tape& tape, const Tensor& x, float floor) {
  return ops::activate(tape, Activation::log, ops::at_least(tape, x, floor));
}

// Losses that weigh nothing would give no gradient, and nobody would see why.
void check_weights(const char* op, std::initializer_list<float> weights) {
  float sum = 0;
  for (const float weight : weights) {
    if (!(weight >= 0)) fail(op, "weights of at least 0", std::to_string(weight));
    sum += weight;
  }
  if (!(sum > 0)) fail(op, "a weight above 0", "none");
}

void check_floor(const char* op, float floor) {
  if (!(floor > 0)) fail(op, "a floor above 0", std::to_string(floor));
}

void check_length(const char* op, const Tensor& x, int window) {
  if (x.dim(1) > window / 2) return;
  fail(op, "clips of more than " + std::to_string(window / 2) + " samples", std::to_string(x.dim(1)));
}

}  // namespace

std::vector<LogMelScale> log_mel_scales(std::span<const int> windows, int sample_rate_hz,
                                        MelScale mel_scale) {
  if (sample_rate_hz < 1) fail("log_mel_scales", "a sample rate", std::to_string(sample_rate_hz) + " Hz");
  std::vector<LogMelScale> scales;
  for (const int window : windows) {
    if (window < 2) fail("log_mel_scales", "windows of at least 2 samples", std::to_string(window));
    // The first triangle is the narrowest one: it is two steps wide, and that must exceed a bin.
    const double widest = hz_to_mel(mel_scale, sample_rate_hz / 2.0);
    const double bin = hz_to_mel(mel_scale, static_cast<double>(sample_rate_hz) / window);
    const int most = static_cast<int>(2 * widest / bin - 1.01);
    scales.push_back({window, std::max(1, std::min(static_cast<int>(std::int64_t{window} * 5 / 32), most))});
  }
  return scales;
}

LogMelLoss::LogMelLoss(const LogMelLossOptions& options) : options_(options) {
  const char* op = "log_mel_loss";
  if (options.scales.empty()) fail(op, "at least one scale", "none");
  if (options.kind == SpectrumKind::complex) fail(op, "magnitudes or powers", "complex spectra");
  check_floor(op, options.floor);
  check_weights(op, {options.log_l1, options.log_l2, options.linear_l1});
  for (const LogMelScale& scale : options.scales) {
    MelOptions mels;
    mels.sample_rate_hz = options.sample_rate_hz;
    mels.window = scale.window;
    mels.mels = scale.mels;
    mels.lowest_hz = options.lowest_hz;
    mels.highest_hz = options.highest_hz;
    mels.scale = options.mel_scale;
    mels.unit_area = options.unit_area;
    scales_.push_back({make_stft(scale.window, options.normalized), MelFilterbank(mels)});
  }
}

Tensor LogMelLoss::operator()(Tape& tape, const Tensor& output, const Tensor& target) const {
  expect_clips("log_mel_loss", output, target);
  for (const Scale& scale : scales_) check_length("log_mel_loss", output, scale.stft.options().window);
  const float share = 1.0f / static_cast<float>(scales_.size());
  Tensor sum;
  for (const Scale& scale : scales_) {
    const Tensor got = scale.mels(tape, scale.stft(tape, output, options_.kind));   // [B, F, mels]
    const Tensor want = scale.mels(tape, scale.stft(tape, target, options_.kind));  // [B, F, mels]
    if (options_.linear_l1 > 0) {
      add_term(tape, sum, mean_difference(tape, got, want), share * options_.linear_l1);
    }
    if (options_.log_l1 == 0 && options_.log_l2 == 0) continue;
    const Tensor difference =
        ops::sub(tape, log_of(tape, got, options_.floor), log_of(tape, want, options_.floor));
    if (options_.log_l1 > 0) {
      const Tensor l1 = ops::mean(tape, ops::abs(tape, difference));
      add_term(tape, sum, l1, share * options_.log_l1 * kPerLn10);
    }
    if (options_.log_l2 > 0) {
      const Tensor l2 = ops::mean(tape, ops::square(tape, difference));
      add_term(tape, sum, l2, share * options_.log_l2 * kPerLn10 * kPerLn10);
    }
  }
  return sum;
}

StftLoss::StftLoss(const StftLossOptions& options) : options_(options) {
  const char* op = "stft_loss";
  if (options.windows.empty()) fail(op, "at least one window", "none");
  check_floor(op, options.floor);
  check_floor(op, options.floor_rms);
  check_weights(op, {options.convergence, options.log_magnitude});
  for (const int window : options.windows) scales_.push_back(make_stft(window, /*normalized=*/true));
}

Tensor StftLoss::operator()(Tape& tape, const Tensor& output, const Tensor& target) const {
  expect_clips("stft_loss", output, target);
  for (const Stft& stft : scales_) check_length("stft_loss", output, stft.options().window);
  const float share = 1.0f / static_cast<float>(scales_.size());
  Tensor sum;
  for (const Stft& stft : scales_) {
    const Tensor got = stft(tape, output, SpectrumKind::magnitude);   // [B, F, bins]
    const Tensor want = stft(tape, target, SpectrumKind::magnitude);  // [B, F, bins]
    if (options_.convergence > 0) {
      // Normalized spectra: noise has its own mean square in every bin.
      const float floor = options_.floor_rms * options_.floor_rms;
      const Tensor ratio = energy_ratio(tape, ops::sub(tape, got, want), want,
                                        floor * static_cast<float>(want.size() / want.dim(0)));
      add_term(tape, sum, ops::mean(tape, root(tape, ratio)), share * options_.convergence);
    }
    if (options_.log_magnitude > 0) {
      const Tensor l1 =
          mean_difference(tape, log_of(tape, got, options_.floor), log_of(tape, want, options_.floor));
      add_term(tape, sum, l1, share * options_.log_magnitude);
    }
  }
  return sum;
}

}  // namespace tessera::train
