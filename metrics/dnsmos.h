// DNSMOS P.835 (Reddy et al. 2022): predicts how listeners would rate the speech signal, the background noise
// and the whole of a recording, without a reference. A small convolutional network over windows of 9 s at 16
// kHz. Leaves out P.808 and the personalized variant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/autograd/tape.h"
#include "core/result.h"
#include "core/tensor.h"
#include "core/thread_pool.h"
#include "metrics/winograd.h"

namespace tessera::metrics {

/// Opinion scores from 1 (bad) to 5.
struct DnsmosRatings {
  double signal = 0, background = 0, overall = 0;
};
struct DnsmosScore {
  DnsmosRatings ratings;  ///< what is reported: polynomials of the raw means
  DnsmosRatings raw;      ///< outputs of the network, averaged over windows
  int windows = 0;
};

/// Immutable: for any number of threads, each with its own pool.
class Dnsmos {
 public:
  static constexpr int kRateHz = 16000;
  static constexpr std::size_t kWindow = 144160, kHop = 16000;  ///< samples

  /// From a safetensors file with the weights under plain names. Errors: io, format, mismatch (a tensor or
  /// shape that is not there).
  static Result<Dnsmos> load(const std::string& path);

  /// A sound at 16 kHz. Shorter than a window, it is repeated end to end and the first window is rated;
  /// longer, all windows that fit, one every second. Errors: those of check_sound; usage (another rate).
  Result<DnsmosScore> score(std::span<const float> sound, int sample_rate_hz, ThreadPool& pool) const;

 private:
  static constexpr int kConvolutions = 7, kDense = 3;

  Tensor spectra(Tape& tape, std::span<const float> sound, std::int64_t count) const;
  Tensor convolve(Tape& tape, const Tensor& x, std::size_t layer, bool begins, bool ends) const;
  Tensor fine_layers(Tape& tape, const Tensor& x, bool begins, bool ends) const;
  Tensor inner_fine_layers(Tape& tape, const Tensor& frames) const;
  std::array<double, 3> rate_window(Tape& tape, const Tensor& fine) const;
  std::array<double, 3> rate_windows(std::span<const float> sound, int windows, ThreadPool& pool) const;

  struct Layer {
    Tensor weights, bias;
  };
  Tensor dft_;   // [320, 2 * 161]: real parts, then imaginary parts
  Layer first_;  // of one channel: there is nothing to save
  std::array<WinogradConvolution, kConvolutions - 1> convolutions_;
  std::array<Layer, kDense> dense_;
};

}  // namespace tessera::metrics
