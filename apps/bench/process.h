// Runs a line of the shell to its end or to a time limit, with what it printed. Nothing of it outlives the
// call: all its processes are one group, which is killed at the end.
#pragma once

#include <filesystem>
#include <string>

#include "core/result.h"

namespace tessera::bench {

/// A new folder for files that go away with it.
class TempFolder {
 public:
  /// Below $TMPDIR or /tmp. Errors: io; usage (its path has characters that a shell would not take as they
  /// are).
  static Result<TempFolder> create();
  TempFolder(TempFolder&& other) noexcept;
  TempFolder& operator=(TempFolder&& other) noexcept;
  ~TempFolder();

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  explicit TempFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

/// What a line that succeeded left.
struct ShellResult {
  std::string out = {};  ///< standard output, the first MiB of it
  double seconds = 0;    ///< from start to end
};

/// Runs `sh -c command` in the current folder, standard input empty. Its outputs lie in `folder` meanwhile.
/// Error (io): it could not start, it failed (with the last line of standard error), it did not end in time.
Result<ShellResult> run_shell(const std::string& command, const TempFolder& folder, double timeout_s);

}  // namespace tessera::bench
