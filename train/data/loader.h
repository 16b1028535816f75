// Prepares the next batches in the background. Which batch comes when depends on the step alone, never on
// timing or on the number of threads: it is Crops::rows, made early.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "train/data/crops.h"

namespace tessera::train {

struct LoaderOptions {
  int ahead = 2;    ///< batches held ready or being made, at least 1
  int threads = 1;  ///< at least 1; no more than `ahead` are started
  int first_row = 0,
      row_count = 0;      ///< this machine's rows of every batch; a count of 0 takes all from the first
  std::int64_t step = 0;  ///< of the first batch
};

class BatchLoader {
 public:
  /// `crops` must outlive this. Throws UsageError for options that cannot work.
  BatchLoader(const Crops& crops, const LoaderOptions& options);
  /// Waits for batches that are being made, not for those that were only planned.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The batch of step(), after which step() is one more. Throws what making it threw (ResultError when the
  /// cache has gone), again each time, step() unchanged. For one thread at a time, as is set_step.
  Batch next();

  /// Of the batch that next() gives: what a checkpoint saves.
  std::int64_t step() const { return next_; }
  /// Goes on from any step; what was prepared for others is dropped.
  void set_step(std::int64_t step);

 private:
  struct Ready {
    Batch batch = {};
    std::exception_ptr trouble = {};
  };
  void work();
  Ready make(std::int64_t step) const;

  const Crops& crops_;
  LoaderOptions options_;
  std::int64_t next_ = 0;  // changed by the caller's thread, under the mutex
  std::mutex mutex_;       // guards everything below
  std::condition_variable to_make_, made_;
  std::int64_t to_take_ = 0;             // the next step that no worker has taken
  std::int64_t generation_ = 0;          // set_step calls so far: batches of older ones are dropped
  std::map<std::int64_t, Ready> ready_;  // by step
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tessera::train
