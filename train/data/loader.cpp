#include "train/data/loader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace tessera::train {
namespace {

void check_step(std::int64_t step) {
  if (step < 0 || step >= Crops::kMostSteps)
    fail("batch_loader", "a step from 0 to 2^40 - 1", std::to_string(step));
}

}  // namespace

BatchLoader::BatchLoader(const Crops& crops, const LoaderOptions& options)
    : crops_(crops), options_(options), next_(options.step), to_take_(options.step) {
  const int batch = crops.options().batch;
  if (options.ahead < 1) fail("batch_loader", "ahead >= 1", std::to_string(options.ahead));
  if (options.threads < 1) fail("batch_loader", "threads >= 1", std::to_string(options.threads));
  check_step(options.step);
  if (options_.row_count == 0) options_.row_count = batch - options.first_row;
  if (options_.first_row < 0 || options_.row_count < 1 || options_.row_count > batch - options_.first_row)
    fail("batch_loader", "rows within a batch of " + std::to_string(batch),
         std::to_string(options_.row_count) + " rows from " + std::to_string(options_.first_row));
  for (int i = 0; i < std::min(options.threads, options.ahead); ++i)
    workers_.emplace_back([this] { work(); });
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  to_make_.notify_all();
  for (auto& worker : workers_) worker.join();
}

BatchLoader::Ready BatchLoader::make(std::int64_t step) const {
  Ready ready;
  try {
    ready.batch = crops_.rows(step, options_.first_row, options_.row_count);
  } catch (...) {
    ready.trouble = std::current_exception();
  }
  return ready;
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_make_.wait(lock, [this] { return stop_ || to_take_ < next_ + options_.ahead; });
    if (stop_) return;
    const std::int64_t step = to_take_++, generation = generation_;
    lock.unlock();
    Ready ready = make(step);
    lock.lock();
    if (generation != generation_) continue;
    ready_.emplace(step, std::move(ready));
    made_.notify_all();
  }
}

Batch BatchLoader::next() {
  std::unique_lock lock(mutex_);
  made_.wait(lock, [this] { return ready_.contains(next_); });
  const auto found = ready_.find(next_);
  if (found->second.trouble) std::rethrow_exception(found->second.trouble);
  Batch batch = std::move(found->second.batch);
  ready_.erase(found);
  ++next_;
  lock.unlock();
  to_make_.notify_one();
  return batch;
}

void BatchLoader::set_step(std::int64_t step) {
  check_step(step);
  {
    const std::lock_guard lock(mutex_);
    next_ = to_take_ = step;
    ++generation_;
    ready_.clear();
  }
  to_make_.notify_all();
}

}  // namespace tessera::train
