// ViSQOL v3 (Chinen et al. 2020; Hines et al. 2015): predicts the mean opinion score of listeners from the
// similarity of gammatone spectrograms. Audio mode (48 kHz) maps the similarity of 32 bands by a support
// vector model; speech mode (16 kHz) that of 21 bands by an exponential or by a lattice network. Leaves out
// resampling and mixing of channels: sounds are mono.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "metrics/svr_model.h"
#include "metrics/tflite_graph.h"

namespace tessera::metrics {

enum class VisqolMode : std::uint8_t {
  audio,           ///< needs the support vector model
  speech,          ///< exponential mapping: needs no file
  speech_lattice,  ///< needs the lattice network
};

struct VisqolOptions {
  VisqolMode mode = VisqolMode::speech;
  std::string model_path = {};  ///< libsvm_nu_svr_model.txt or the lattice's .tflite
  bool scaled = true;           ///< speech mode: identical sounds score 5 instead of about 4
};

struct VisqolScore {
  double mos_lqo = 1;                        ///< 1 (bad) to 5 (excellent); the lattice stays below 5
  double similarity = 0;                     ///< mean NSIM of all bands
  std::vector<double> band_similarity = {};  ///< [bands], from 50 Hz up: mean over patches
  std::vector<double> band_lowest = {};      ///< mean over the worst tenth of the patches
  std::vector<double> band_deviations = {};  ///< over all frames
  std::vector<double> band_energies = {};    ///< of the degraded sound
  std::size_t patches = 0;
};

/// Immutable: for any number of threads.
class Visqol {
 public:
  static constexpr std::size_t kMaxSamples = std::size_t{1} << 23;  ///< 175 s at 48 kHz; takes 0.7 GB

  /// Errors: those of the model file; mismatch (a lattice without the inputs of ViSQOL).
  static Result<Visqol> load(const VisqolOptions& options);

  /// The sample rate that the mode was made for.
  int native_rate_hz() const { return options_.mode == VisqolMode::audio ? 48000 : 16000; }
  /// Compares sounds of any two lengths at any rate: bands reach up to half of it (in speech mode to 8 kHz at
  /// most). A silent degraded sound scores 1. Errors: those of check_pair; format (a silent reference; sounds
  /// too short: audio mode needs 0.96 s, speech mode 0.64 s); unsupported (above kMaxSamples).
  Result<VisqolScore> score(std::span<const float> reference, std::span<const float> degraded,
                            int sample_rate_hz) const;

 private:
  double predict(const VisqolScore& score) const;

  VisqolOptions options_;
  std::optional<SvrModel> svr_;
  std::optional<TfliteGraph> lattice_;
};

}  // namespace tessera::metrics
