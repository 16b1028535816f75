// Features of any other teacher (WavLM, HuBERT, Whisper, ...), computed beforehand and kept in a folder: one
// .npy or .safetensors file per recording. docs/teachers.md shows how to write them. Leaves out .npz and
// pickles.
#pragma once

#include <memory>

#include "train/teachers/teacher.h"

namespace tessera::train {

struct FeatureFilesOptions {
  int sample_rate_hz = 16000;  ///< of the samples whose number is checked against the files
  double file_rate_hz = 50;    ///< frames per second in the files
  /// So many frames of a file, one after another, are averaged into one frame of features(): 4 makes 12.5 Hz
  /// of 50 Hz.
  int average = 1;
  /// A file may have so many frames fewer or more than its recording lasts: models differ in what they do at
  /// the ends. Too few: the last one is repeated; too many: cut.
  int tolerance = 2;
};

class FeatureFiles : public Teacher {
 public:
  /// Looks at the first file by name to learn E; all others must have it. Errors: io for a folder that cannot
  /// be read, mismatch for one without feature files, usage for options that cannot work; those of features()
  /// for the first file.
  static Result<std::unique_ptr<FeatureFiles>> open(const std::string& folder,
                                                    const FeatureFilesOptions& options = {});

  int dimension() const override { return dimension_; }
  int sample_rate_hz() const override { return options_.sample_rate_hz; }
  double frame_rate_hz() const override { return options_.file_rate_hz / options_.average; }

  /// Reads `name` without its extension plus .npy or .safetensors from the folder: first under its relative
  /// path, then under its last part alone. A file holds [frames, E] or [1, frames, E] in f32, f16, bf16 or
  /// f64 (what core/npy.h and core/safetensors.h read of them); a .safetensors file one tensor, or one named
  /// `features`. Errors: io for a missing file, those of the file's format, mismatch for another dtype,
  /// shape, E or number of frames, format for a value that is not finite.
  Result<Tensor> features(const std::string& name, std::span<const float> pcm,
                          ThreadPool& pool) const override;

 private:
  FeatureFiles() = default;

  std::string folder_;
  FeatureFilesOptions options_;
  int dimension_ = 0;
};

}  // namespace tessera::train
