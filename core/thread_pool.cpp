#include "core/thread_pool.h"

#include <string>

#include "core/error.h"

namespace tessera {

ThreadPool::ThreadPool(int threads) {
  if (threads < 0) fail("thread pool", "threads >= 0", std::to_string(threads));
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int count, Function function, const void* context) {
  {
    const std::lock_guard lock(mutex_);
    function_ = function;
    context_ = context;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  wake_.notify_all();
  drain();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadPool::drain() {
  for (int i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) function_(context_, i);
}

void ThreadPool::work() {
  unsigned seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    drain();
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace tessera
