// Batches of random crops as a pure function of (seed, step, dataset): nothing is remembered from one batch
// to the next, so the position in the data is one number and a resumed run sees what it would have seen.
//
// An epoch: the recordings, laid end to end, are cut into stretches about as long as a crop; a permutation
// that is new in every epoch visits each stretch once, and the crop is taken at a random point of it. So
// every second is equally likely (less so within a crop's length of a recording's ends), a long recording is
// drawn in proportion to its length, and none is missed for long. Left out: weights of sources, time
// stretching, reverberation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "train/data/dataset.h"

namespace tessera::train {

/// dB and dBFS: 20 log10 of an amplitude; 0 dBFS is an RMS of 1.
struct CropOptions {
  std::uint64_t seed = 0;
  int batch = 1;            ///< B, crops of one step over all machines
  std::int64_t length = 0;  ///< L, samples of a crop; required
  std::int64_t align = 1;   ///< crops begin at a multiple of this many samples of their recording
  double gain_min_db = 0, gain_max_db = 0;  ///< level, uniform in dB; never lifts a crop's peak above 1
  bool flip_polarity = false;               ///< every other crop, at random, times -1
  std::optional<double> noise_dbfs = {};    ///< white noise of this RMS on top (of a uniform distribution)
  /// A crop whose RMS before the gain is below this is drawn again from anywhere in the dataset, `redraws`
  /// times at most; the last is taken as it is. A share `keep_quiet` of all crops is taken at once, so that
  /// pauses are learnt.
  std::optional<double> quiet_dbfs = {};
  int redraws = 8;
  double keep_quiet = 0.1;
  /// With this probability a crop from anywhere is added, at a level uniform in dB relative to its own.
  double mix_probability = 0;
  double mix_min_db = -12, mix_max_db = 0;
};

/// A stretch of a recording in a row of the batch.
struct CropPart {
  std::int64_t recording = 0;  ///< index into Dataset::recordings()
  std::int64_t begin = 0;      ///< first sample, in the recording
  std::int64_t length = 0;     ///< samples; less than L when the recording is shorter
  std::int64_t offset = 0;     ///< where it begins in the row (a multiple of align); zeros around it
  float gain = 1;              ///< factor, with the polarity's sign
};

struct CropInfo : CropPart {
  std::optional<CropPart> mixed = {};  ///< what was added
};

struct Batch {
  std::int64_t step = 0;
  Tensor audio = {};  ///< [B, L] f32
  std::vector<CropInfo> crops = {};
};

/// What a checkpoint stores of the data.
struct DataPosition {
  std::uint64_t seed = 0;
  std::int64_t step = 0;  ///< of the next batch
  std::uint64_t fingerprint = 0;
  std::int64_t recordings = 0, samples = 0;  ///< of the dataset, for the message when it is another one
};

class Crops {
 public:
  /// Steps are below this.
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

  /// The dataset must outlive this. Throws UsageError for options that cannot work.
  Crops(const Dataset& dataset, const CropOptions& options);

  /// Batch number `step` >= 0. From any thread. Throws ResultError when the cache has gone or changed.
  Batch batch(std::int64_t step) const { return rows(step, 0, options_.batch); }
  /// Rows [first, first + count) of that batch: one machine's part. Rows do not depend on who else makes
  /// which.
  Batch rows(std::int64_t step, int first, int count) const;

  /// Steps until every second was visited once on average.
  double steps_per_epoch() const;

  /// "train/a/x.flac at 3.20 s", " + train/b/y.flac at 0.00 s" when mixed.
  std::string name(const CropInfo& crop) const;
  /// For an error message: "step 812: " and the name of each crop.
  std::string name(const Batch& batch) const;

  /// To save with a checkpoint whose next batch is `step`.
  DataPosition position(std::int64_t step) const;
  /// Whether going on from a saved position continues that run. Error mismatch: other data, another seed.
  Result<void> check(const DataPosition& saved) const;

  const CropOptions& options() const { return options_; }

 private:
  CropInfo fill(std::int64_t draw, float* row) const;
  CropPart part_at(std::int64_t point, double offset) const;
  CropPart planned(std::int64_t draw, double within, double offset) const;
  bool quiet(const CropPart& part, const float* row) const;

  const Dataset& dataset_;
  CropOptions options_;
  std::vector<std::int64_t> ends_;  // of the recordings, laid end to end
  std::int64_t stretches_ = 1;      // of one epoch
};

}  // namespace tessera::train
