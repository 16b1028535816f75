// A semantic teacher: something that already knows what is being said, whose features a codec's first
// codebook is trained to predict (SpeechTokenizer, Zhang et al. 2023; Mimi, Defossez et al. 2024).
// docs/teachers.md says how its frames lie on the recording. Leaves out resampling to the teacher's rate: the
// caller's data loader does that.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace tessera::train {

/// Const once made: several threads may ask at once, each with its own pool.
class Teacher {
 public:
  virtual ~Teacher() = default;

  /// E: values per frame.
  virtual int dimension() const = 0;
  /// Rate of the mono samples that features() takes.
  virtual int sample_rate_hz() const = 0;
  virtual double frame_rate_hz() const = 0;
  /// Features of a whole recording, [frames(pcm.size()), E] in f32: row j describes the samples from j to
  /// j + 1 frames, and is meant for the codec frame that lies there. A crop that begins on a frame is then a
  /// run of rows, so they can be computed once and kept. `name` is the recording's path relative to the data
  /// folder, for features kept in files and for errors.
  virtual Result<Tensor> features(const std::string& name, std::span<const float> pcm,
                                  ThreadPool& pool) const = 0;

  /// Rows for so many samples: every frame that has begun.
  std::int64_t frames(std::int64_t samples) const {
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(samples) * frame_rate_hz() / sample_rate_hz()));
  }
};

}  // namespace tessera::train
