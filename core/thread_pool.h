// A fixed set of threads that share the iterations of one loop at a time. Work is split, never summed, across
// threads: results do not depend on how many there are. A loop takes no lock and allocates nothing: loops
// follow one another within microseconds in a codec, so threads look out for the next one for a moment before
// they sleep.
#pragma once

#include <atomic>
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

  // Written by run() before generation_ tells the workers, read by them after.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;
  bool stop_ = false;
  std::atomic<int> next_{0};             // the next iteration that nobody has taken
  std::atomic<int> busy_{0};             // workers that have not finished the loop
  std::atomic<unsigned> generation_{0};  // loops so far
  std::vector<std::thread> workers_;
};

}  // namespace tessera
