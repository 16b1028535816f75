// The seam between AudioWriter, which makes integers of samples, and the two file formats.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "codec/media.h"
#include "core/atomic_file.h"

namespace tessera {

class AudioSink {
 public:
  virtual ~AudioSink() = default;
  /// Integer samples of the sink's width, right-aligned; for float32 the bits of the floats.
  virtual Result<void> write(std::span<const int32_t> samples) = 0;
  /// Completes the file and puts it in place.
  virtual Result<void> finish() = 0;
};

Result<std::unique_ptr<AudioSink>> make_wav_sink(AtomicFile file, const WriteOptions& options);
Result<std::unique_ptr<AudioSink>> make_flac_sink(AtomicFile file, const WriteOptions& options);

}  // namespace tessera
