// Ctrl-C and a polite kill: the unfinished output goes away, then the process ends by the same signal, so
// that a shell sees why. A thread waits for the signals (sigwait); nothing runs inside a handler.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::app {

/// One per program, made first thing in main: threads made later inherit that the signals are blocked.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// From now on a signal removes the temporary file of the output `path` (core/atomic_file.h says its name).
  void guard(const std::string& path);
  /// From now on the first signal only sets what this returns: the command stops when it is ready to. The
  /// second ends the process.
  const std::atomic<bool>& defer();

 private:
  void wait();
  void remove_temporaries();

  std::mutex mutex_;
  std::string folder_;  // of the output; empty when there is nothing to remove; guarded by mutex_
  std::atomic<bool> stop_{false};
  std::atomic<bool> deferred_{false}, asked_{false};
  std::thread thread_;
};

}  // namespace tessera::app
