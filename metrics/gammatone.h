// The spectrogram of ViSQOL: energies of a gammatone filterbank (Patterson et al. 1992; coefficients after
// Slaney 1993) whose bands lie evenly on the ERB scale of Glasberg and Moore (1990), over Hann-windowed
// frames of 80 ms every 20 ms. The filters start anew in each frame.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tessera::metrics {

/// Rows of bands, lowest frequency first.
struct Spectrogram {
  std::size_t frames = 0, bands = 0;
  std::vector<double> values;  ///< [frames, bands]

  std::span<const double> row(std::size_t frame) const {
    return std::span(values).subspan(frame * bands, bands);
  }
};

/// Immutable: for any number of threads.
class GammatoneFilterbank {
 public:
  /// Bands from 50 Hz up to `highest_hz` or half the rate, whichever is less.
  GammatoneFilterbank(int sample_rate_hz, int bands, double highest_hz);

  std::size_t bands() const { return bands_; }
  std::size_t window() const { return window_.size(); }  ///< samples of a frame
  std::size_t hop() const { return window_.size() / 4; }
  /// Frames of a sound of `samples`; 0 unless it is longer than a window.
  std::size_t frames(std::size_t samples) const;
  /// The root mean square of each band in each frame.
  Spectrogram operator()(std::span<const double> sound) const;

 private:
  std::size_t bands_;
  std::vector<double> window_;
  // [6, kBandLanes * n]: the zeros of four sections, then the two coefficients of the pole pair that they
  // share; then the gain of all.
  std::vector<double> coefficients_, gain_;
};

/// In place: decibels, nothing below -45 dB or 45 dB below the loudest band of the frame in either sound; the
/// lowest value of both becomes 0.
void prepare_for_comparison(Spectrogram& reference, Spectrogram& degraded);

}  // namespace tessera::metrics
