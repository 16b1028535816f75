// Between a model in training and a weights file of the tessera family (docs/tessera-family.md).
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "core/safetensors.h"
#include "train/codec_model.h"
#include "train/parameters.h"
#include "train/quantizers/quantizer_learner.h"

namespace tessera::train {

/// A file's values in the layout of training.
struct ModelFile {
  TesseraConfig config = {};
  TransformTables tables = {};
  NamedTensors weights = {};    ///< as Parameters of a CodecModel has them
  NamedTensors codebooks = {};  ///< [size, latent], "0", "1", ...
};

/// Reads a weights file of the tessera family. Errors: those of SafeTensors; format, mismatch: no such model.
Result<ModelFile> read_model_file(const std::string& path);

/// Writes what `tessera encode --model` reads: weights and codebooks in `type` (f32 or bf16), the transform
/// in f32. `metadata` goes into the file beside the configuration. Error io.
Result<void> write_model_file(const std::string& path, const CodecModel& model, const Parameters& parameters,
                              const QuantizerLearner& quantizer, DType type, Metadata metadata = {});

}  // namespace tessera::train
