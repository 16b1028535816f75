// What a codec family builds from a weights file: layers, a quantizer, and the few facts that the engine
// needs. The engine (encoder.cpp, decoder.cpp) knows no family by name.
#pragma once

#include <memory>
#include <span>

#include "codec/codec.h"
#include "core/layer.h"
#include "core/safetensors.h"
#include "quantizers/quantizer.h"

namespace tessera {

/// How an encoder ends a stream whose last frame is partial.
enum class StreamEnd : std::uint8_t {
  zero_pad,    ///< the PCM is followed by zeros up to whole frames
  layers_pad,  ///< every layer completes its own last window (EnCodec)
};

struct Model {
  CodecInfo info;
  StreamEnd end = StreamEnd::zero_pad;
  std::unique_ptr<Layer> encoder;        ///< [samples, 1] -> [frames, dimension]; null if left out on loading
  std::unique_ptr<Layer> decoder;        ///< [frames, dimension] -> [samples, 1]; null if left out
  std::unique_ptr<Quantizer> quantizer;  ///< over [frames, dimension]
};

/// A codec family: tells its files and builds its model.
struct Family {
  const char* name;
  const char* description;
  /// Whether the file looks like one of this family's.
  bool (*matches)(const SafeTensors& file);
  /// `folder` is where the file lies, "" if it lies in memory: a config.json there may refine what shapes do
  /// not say. Throws ResultError for a file that does not fit (see codec/weights.h).
  std::unique_ptr<Model> (*build)(const SafeTensors& file, const std::string& folder,
                                  const LoadOptions& options);
};

/// All families (codec/families.cpp).
std::span<const Family> families();

}  // namespace tessera
