// A codec of the tessera family on the tape: the network that codec/tessera_family.cpp streams, built from
// the same configuration, out of the operations that the stream's layers call. In f32 it gives the stream's
// bits (tests/train/codec_model_test.cpp).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codec/tessera_config.h"
#include "core/autograd/tape.h"
#include "core/result.h"
#include "train/parameters.h"

namespace tessera::train {

/// What is fixed: samples to coefficients and back.
struct TransformTables {
  Tensor basis = {};  ///< [hop, window]
  Tensor scale = {};  ///< [hop], above 0
};

/// The MDCT of the configuration's hop; a window of twice the hop. All scales 1.
TransformTables mdct_tables(const TesseraConfig& config);

class CodecModel {
 public:
  /// Adds the weights of all blocks to `parameters`, under the names that a weights file has, drawn at
  /// random: residual branches with a hundredth of the variance that would keep their input's, so that each
  /// begins close to doing nothing. Throws UsageError for blocks that do not fit one another and for what a
  /// tape cannot run (a stride and a dilation at once, a transposed kernel that is no multiple of its
  /// stride).
  CodecModel(const TesseraConfig& config, const TransformTables& tables, Parameters& parameters);

  const TesseraConfig& config() const { return config_; }
  const TransformTables& tables() const { return tables_; }
  void set_tables(const TransformTables& tables);
  int samples_per_frame() const { return samples_per_frame_; }
  /// Residual blocks keep their input only and run again on the way back: less memory, more time.
  void set_recompute(bool recompute) { recompute_ = recompute; }

  /// pcm [B, L], L a multiple of samples_per_frame() -> latents [B, T, D], L / T being samples_per_frame().
  /// Each clip begins like a stream: nothing before it.
  Tensor encode(Tape& tape, const Tensor& pcm) const;
  /// latents [B, T, D] -> pcm [B, L]: pre_skip samples late.
  Tensor decode(Tape& tape, const Tensor& latents) const;
  /// The rows of pcm [B, L] before the first block with weights: [B, rows, C].
  Tensor front(Tape& tape, const Tensor& pcm) const;
  /// The scaled coefficients of the transform of pcm [B, L]: [B, rows, hop].
  Tensor coefficients(Tape& tape, const Tensor& pcm) const;

 private:
  struct Conv {
    Tensor weight = {}, bias = {};
  };
  struct Block {
    TesseraBlock spec = {};
    Conv first = {}, second = {};
    std::shared_ptr<const PitchFilter> pitch_filter = {};
    std::shared_ptr<const SpectralSmoother> smoother = {};
  };
  std::vector<Block> add_blocks(const std::vector<TesseraBlock>& specs, Parameters& parameters);
  Tensor run(Tape& tape, const Block& block, Tensor x) const;
  Tensor analysis(Tape& tape, const Tensor& x) const;
  Tensor synthesis(Tape& tape, const Tensor& x) const;

  TesseraConfig config_;
  TransformTables tables_;
  Tensor analysis_basis_, synthesis_basis_, inverse_scale_;
  int samples_per_frame_ = 1;
  bool recompute_ = false;
  std::vector<Block> encoder_, decoder_;
};

}  // namespace tessera::train
