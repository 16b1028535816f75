// A fixed set of threads that share the iterations of one loop at a time. Work is split, never summed, across
// threads: results do not depend on how many there are. Nothing is allocated per loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera {

class ThreadPool {
 public:
  /// `threads` counts the caller: 1 starts no thread. 0 takes the number of cores.
  explicit ThreadPool(int threads = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(i) for every i in [0, count), each once, on any thread; returns when all are done. The body
  /// must not throw and must not call the pool again.
  template <class Body>
  void parallel_for(int count, const Body& body) {
    if (workers_.empty() || count <= 1) {
      for (int i = 0; i < count; ++i) body(i);
      return;
    }
    run(
        count, [](const void* context, int i) { (*static_cast<const Body*>(context))(i); }, &body);
  }

 private:
  using Function = void (*)(const void* context, int i);
  void run(int count, Function function, const void* context);
  void work();
  void drain();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  unsigned generation_ = 0;  // guarded by mutex_, as are the next five
  bool stop_ = false;
  int busy_ = 0;
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;
  std::atomic<int> next_{0};
  std::vector<std::thread> workers_;
};

}  // namespace tessera
