// First weights that work: the network of a new model is set up so that it already is a transform codec, and
// training only improves on it. Residual streams carry the principal components of the (shape and gain of
// the) transform through, the latents are the first of them, the codebooks come from k-means. A random start
// needs many times the steps.
#pragma once

#include "train/codec_model.h"
#include "train/config.h"
#include "train/quantizers/quantizer_learner.h"

namespace tessera::train {

/// The blocks of a new model: analysis, gain apart, a convolution in, residual blocks, a convolution out; the
/// decoder the same backwards. Error usage: sizes that do not fit (the window, the width).
Result<TesseraConfig> new_model(const ModelConfig& config);

/// Scales that give every coefficient the same power over `pcm` [B, L], times a weight that falls beyond the
/// frequencies whose waveform the ear follows; then weights of the convolutions at both ends as said above.
/// The model must be one of new_model().
void start_as_transform_codec(CodecModel& model, Parameters& parameters, const Tensor& pcm, Tape& tape);

/// Codebooks by k-means of the latents of pcm [B, L].
void start_codebooks(const CodecModel& model, QuantizerLearner& quantizer, const Tensor& pcm, Tape& tape);

}  // namespace tessera::train
