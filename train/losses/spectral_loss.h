// Losses that compare spectrograms at several resolutions, none of which sees phase: log-mel (EnCodec,
// Défossez et al. 2022; DAC, Kumar et al. 2023) and plain STFT magnitudes (Parallel WaveGAN, Yamamoto et al.
// 2020). Hops are a quarter of the window. Every term is a mean over clips, frames and bands, and over the
// scales: clip length, batch and number of scales do not change what a weight means (DAC sums over scales).
#pragma once

#include <span>
#include <vector>

#include "train/losses/mel.h"
#include "train/losses/spectrogram.h"

namespace tessera::train {

struct LogMelScale {
  int window = 0;  ///< samples
  int mels = 0;
};

/// Scales with 5 mels for every 32 samples of the window, as in DAC, or fewer where a triangle could fall
/// between two bins (short windows at high rates).
std::vector<LogMelScale> log_mel_scales(std::span<const int> windows, int sample_rate_hz,
                                        MelScale mel_scale = MelScale::slaney);

struct LogMelLossOptions {
  int sample_rate_hz = 16000;
  std::vector<LogMelScale> scales = {{64, 10}, {128, 20}, {256, 40}, {512, 80}, {1024, 160}, {2048, 320}};
  double lowest_hz = 0, highest_hz = 0;  ///< as in MelOptions
  MelScale mel_scale = MelScale::slaney;
  bool unit_area = true;
  SpectrumKind kind = SpectrumKind::magnitude;  ///< or power
  bool normalized = false;                      ///< as in StftOptions
  /// Mel values below it count as it, and get no gradient: how quiet a band may be before it is silence.
  float floor = 1e-5f;
  float log_l1 = 1, log_l2 = 0;  ///< weights of the mean |d| and d^2, d the difference of log10 mels
  float linear_l1 = 0;           ///< weight of the mean |difference| of the mels themselves (EnCodec: 1)
};

class LogMelLoss {
 public:
  /// Makes the tables; throws UsageError for options that cannot work.
  explicit LogMelLoss(const LogMelLossOptions& options = {});

  /// output, target [B, T] -> [1]. T must exceed half the longest window.
  Tensor operator()(Tape& tape, const Tensor& output, const Tensor& target) const;

 private:
  struct Scale {
    Stft stft;
    MelFilterbank mels;
  };
  LogMelLossOptions options_;
  std::vector<Scale> scales_;
};

struct StftLossOptions {
  std::vector<int> windows = {512, 1024, 2048};  ///< samples
  float floor = 1e-5f;                           ///< magnitudes below it count as it in the log term
  /// Root mean square of the noise whose spectrum is added to the target's energy: what the convergence of a
  /// silent clip is measured against.
  float floor_rms = 1e-3f;
  float convergence = 1;    ///< weight of ||X^ - X|| / ||X||, per clip
  float log_magnitude = 1;  ///< weight of the mean |ln X^ - ln X|
};

class StftLoss {
 public:
  /// Makes the tables; throws UsageError for options that cannot work.
  explicit StftLoss(const StftLossOptions& options = {});

  /// output, target [B, T] -> [1]. T must exceed half the longest window.
  Tensor operator()(Tape& tape, const Tensor& output, const Tensor& target) const;

 private:
  StftLossOptions options_;
  std::vector<Stft> scales_;
};

}  // namespace tessera::train
