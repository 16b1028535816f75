#include "core/thread_pool.h"

#include <hwy/cache_control.h>

#include <string>

#include "core/error.h"

namespace tessera {
namespace {

// Returns once `value` is no longer `old`: looks for some tens of microseconds, then sleeps.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  constexpr int kLooks = 2000;
  for (int look = 0; look < kLooks; ++look) {
    if (value.load(std::memory_order_acquire) != old) return;
    hwy::Pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads < 0) fail("thread pool", "threads >= 0", std::to_string(threads));
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int count, Function function, const void* context) {
  function_ = function;
  context_ = context;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  drain();
  for (int busy; (busy = busy_.load(std::memory_order_acquire)) != 0;) wait_while(busy_, busy);
}

void ThreadPool::drain() {
  for (int i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) function_(context_, i);
}

void ThreadPool::work() {
  for (unsigned seen = 0;; ++seen) {
    wait_while(generation_, seen);
    if (stop_) return;
    drain();
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace tessera
