// Memory and start-up time of a codec in a process of its own. A small process is forked when the program has
// loaded nothing yet; for each question it forks a child, which makes the codec, runs it and answers. So
// nothing that the suite holds is counted, and no thread of it is ever forked. Leaves out Windows.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "apps/bench/codec_runner.h"
#include "core/result.h"

namespace tessera::bench {

using RunnerFactory = std::function<Result<std::unique_ptr<CodecRunner>>(const std::string& spec)>;

struct ProcessUsage {
  /// Of the run above what the idle process has (getrusage); of a codec that is a program of its own, that
  /// of its largest process, and not below the idle process's (some 20 MiB).
  double peak_memory_mib = 0;
  double start_up_ms =
      0;  ///< from making the codec to the end of encoding and decoding 20 ms, files in memory
};

class ProcessProbe {
 public:
  /// Forks: to be called before other threads are there. Error: io.
  static Result<ProcessProbe> start(const RunnerFactory& make);
  ProcessProbe(ProcessProbe&& other) noexcept;
  ProcessProbe& operator=(ProcessProbe&& other) noexcept;
  /// Ends the process.
  ~ProcessProbe();

  /// Runs the codec that `spec` makes, at its point of that name, over a recording. Errors: the codec's; the
  /// recording's; usage (no such point); io (the child died or took more than 5 minutes).
  Result<ProcessUsage> measure(const std::string& spec, const std::string& point,
                               const std::string& recording);

 private:
  ProcessProbe(int socket, pid_t server) : socket_(socket), server_(server) {}
  void close();

  int socket_ = -1;
  pid_t server_ = -1;
};

}  // namespace tessera::bench
