// What a training run shows while it goes on: on a terminal a block of lines that is redrawn, otherwise a
// line per logged step.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/quantizers/quantizer_learner.h"

namespace tessera::train {

struct TrainingStatus {
  std::int64_t step = 0;   ///< steps done
  std::int64_t steps = 0;  ///< in all
  double audio_s = 0;      ///< seconds of audio per step
  double learning_rate = 0;
  std::vector<std::pair<std::string, double>> losses = {};
  std::vector<CodebookHealth> codebooks = {};
  int codebook_size = 0;
  std::string note = {};  ///< the last thing that happened ("checkpoint at step 1200"); empty: nothing
};

/// "step 1200 of 20000 (6 %), 3.21 steps/s, 51.4 s of audio per second, 1:37:40 left", then the losses, then
/// the codebooks, then the note.
std::vector<std::string> status_block(const TrainingStatus& status, double steps_per_s);
/// The same in one line, shorter.
std::string status_line(const TrainingStatus& status, double steps_per_s);

class ProgressDisplay {
 public:
  /// Writes to `stream`; redraws if `terminal`, else prints a line for every call of update() with `logged`.
  ProgressDisplay(std::FILE* stream, bool terminal) : stream_(stream), terminal_(terminal) {}
  /// Leaves the block as it is.
  ~ProgressDisplay() = default;
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// After each step; `logged` where its metrics were logged. A terminal is redrawn four times a second.
  void update(const TrainingStatus& status, bool logged);
  /// Prints a line for good, above the block.
  void print(const std::string& line);
  /// Takes the block away.
  void clear();

  /// Of the last half minute or so, whatever stood still in between (an evaluation) included; 0 at first.
  double steps_per_s() const { return steps_per_s_; }

 private:
  using Clock = std::chrono::steady_clock;
  void measure(std::int64_t step);

  std::FILE* stream_;
  bool terminal_;
  int shown_ = 0;  // lines of the block on the screen
  Clock::time_point next_ = Clock::now();
  std::optional<std::pair<std::int64_t, Clock::time_point>> measured_;
  double steps_per_s_ = 0;
};

}  // namespace tessera::train
