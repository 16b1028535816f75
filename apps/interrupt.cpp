// SIGPIPE is ignored here too: a reader that went away shows as an ordinary write error.
#include "apps/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>

namespace tessera::app {
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { wait(); });
}

Interrupt::~Interrupt() {
  stop_ = true;
  // The signal is blocked: sigwait takes it. NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread)
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void Interrupt::guard(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path == "-") return;
  const fs::path target = fs::weakly_canonical(fs::absolute(path), error);
  const std::lock_guard lock(mutex_);
  if (!error) folder_ = target.parent_path().string();
}

const std::atomic<bool>& Interrupt::defer() {
  deferred_ = true;
  return asked_;
}

void Interrupt::wait() {
  const sigset_t set = ending_signals();
  int signal = 0;
  do {
    sigwait(&set, &signal);
    if (stop_) return;
  } while (deferred_ && !asked_.exchange(true));
  remove_temporaries();
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  pthread_kill(pthread_self(), signal);
}

void Interrupt::remove_temporaries() {
  const std::lock_guard lock(mutex_);
  if (folder_.empty()) return;
  // One output at a time is open; a few more numbers cover leftovers of a dead process that had our id.
  for (int i = 0; i < 16; ++i) {
    const std::string name = ".tessera-" + std::to_string(getpid()) + "-" + std::to_string(i) + ".tmp";
    unlink((folder_ + "/" + name).c_str());
  }
}

}  // namespace tessera::app
