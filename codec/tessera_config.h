// The configuration of the tessera family as the metadata `config` of a weights file holds it: what the
// layers are, in which order. The stream (tessera_family.cpp) and the trainer (train/) build the same network
// from it. docs/tessera-family.md is the specification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/pitch_filter.h"
#include "core/spectral_smoother.h"

namespace tessera {

/// One block of an encoder or decoder.
struct TesseraBlock {
  enum class Kind : std::uint8_t {
    transform,          ///< samples -> coefficients, scaled and companded
    inverse_transform,  ///< back
    analysis,           ///< samples -> coefficients, scaled
    synthesis,          ///< back
    split_gain,         ///< bands: rows -> shapes and log gains of their bands
    join_gain,          ///< back
    conv,               ///< name, in, out, kernel, stride, dilation
    conv_transpose,     ///< name, in, out, kernel, stride
    residual,           ///< name, in == out, kernel, dilation
    pitch_filter,       ///< pitch: samples -> samples
    spectral_smoother,  ///< smoother: samples -> samples
  };
  Kind kind = Kind::conv;
  std::string name = {};
  int in = 1, out = 1;
  int kernel = 1;
  int stride = 1;
  int dilation = 1;
  std::vector<int> bands = {};  ///< widths
  PitchFilterOptions pitch = {};
  SpectralSmootherOptions smoother = {};

  /// Whether it turns samples into rows of the hop, or back.
  bool transforms() const { return kind <= Kind::synthesis; }
  /// The samples that a block from samples to samples takes at a time; 0: it is none.
  int sample_hop() const {
    return kind == Kind::pitch_filter ? pitch.hop : kind == Kind::spectral_smoother ? smoother.hop : 0;
  }
};

struct TesseraConfig {
  int sample_rate_hz = 0;
  int hop = 1, window = 1;  ///< of the transform
  int pre_skip = 0;         ///< samples of delay
  int latent = 1;
  int codebooks = 1, codebook_size = 1;
  int search_paths = 1;    ///< that the encoder follows through the codebooks of a plain residual quantizer
  int code_dimension = 0;  ///< of a factorized quantizer; 0: a plain residual one
  std::vector<TesseraBlock> encoder = {}, decoder = {};
};

/// Reads the JSON text. Throws ResultError (format, unsupported): what was expected and what came.
TesseraConfig parse_tessera_config(std::string_view json);
/// The text that parse_tessera_config reads.
std::string to_json(const TesseraConfig& config);

}  // namespace tessera
