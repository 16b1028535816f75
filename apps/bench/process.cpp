// The end of the child is polled for, at intervals that grow with the time passed: no signal handler, and no
// more than 2 % of the time lost. It is reaped only after its group was killed, so that no other process can
// have the number meanwhile.
#include "apps/bench/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

namespace tessera::bench {
namespace {

constexpr std::size_t kMaxOutput = 1 << 20;
constexpr std::size_t kMaxTail = 4096;  // of standard error, for its last line
constexpr std::size_t kMaxLine = 300;

/// What a child is started with.
class SpawnSettings {
 public:
  SpawnSettings(const std::string& out, const std::string& err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, out.c_str(), kWrite, 0600);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, err.c_str(), kWrite, 0600);
    // The command blocks signals (apps/interrupt.h); what it starts shall not.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_ = {};
  posix_spawnattr_t attributes_ = {};
};

/// Whether the child ended by itself within the time, and after which; it is not reaped yet.
bool ended_within(pid_t child, double timeout_s, double& seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (;;) {
    siginfo_t info = {};
    const std::chrono::duration<double> passed = Clock::now() - start;
    seconds = passed.count();
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR) {
      return true;
    }
    if (info.si_pid == child) return true;
    if (seconds > timeout_s) return false;
    std::this_thread::sleep_for(std::clamp<std::chrono::duration<double>>(
        passed / 50, std::chrono::microseconds(200), std::chrono::milliseconds(50)));
  }
}

/// The text without line ends and other control characters.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string last_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(file.tellg());
  if (size <= 0) return "";
  file.seekg(std::max<std::int64_t>(0, size - static_cast<std::int64_t>(kMaxTail)));
  std::string line, last;
  while (std::getline(file, line)) {
    const auto end = line.find_last_not_of(" \t\r");
    if (end != std::string::npos) last = line.substr(0, std::min(end + 1, kMaxLine));
  }
  return one_line(last);
}

std::string first_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxOutput, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<TempFolder> TempFolder::create() {
  std::error_code error;
  const auto base = std::filesystem::temp_directory_path(error);
  if (error) return Error{ErrorCode::io, "no folder for temporary files: " + error.message()};
  std::string path = (base / "tessera_bench_XXXXXX").string();
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-+", c);
  };
  if (!std::all_of(path.begin(), path.end(), plain)) {
    return Error{ErrorCode::usage,
                 "TMPDIR: expected a path of letters, digits and / . _ - + (it goes into commands), got " +
                     base.string()};
  }
  if (!mkdtemp(path.data())) {
    return Error{ErrorCode::io, path + ": cannot be made: " + std::generic_category().message(errno)};
  }
  return TempFolder(std::filesystem::path(path));
}

TempFolder::TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempFolder& TempFolder::operator=(TempFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempFolder::~TempFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

Result<ShellResult> run_shell(const std::string& command, const TempFolder& folder, double timeout_s) {
  const std::string out = folder.file("stdout.txt"), err = folder.file("stderr.txt");
  const SpawnSettings settings(out, err);
  std::string shell = "sh", option = "-c", line = command;
  const std::array<char*, 4> arguments{shell.data(), option.data(), line.data(), nullptr};
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, "/bin/sh", settings.actions(), settings.attributes(), arguments.data(), environ);
  if (failed != 0) {
    return Error{ErrorCode::io, "cannot start /bin/sh: " + std::generic_category().message(failed)};
  }
  double seconds = 0;
  const bool in_time = ended_within(child, timeout_s, seconds);
  kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return Error{ErrorCode::io, "'" + one_line(command) + "' did not end within " +
                                    std::to_string(std::lround(timeout_s * 1000)) + " ms"};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ShellResult{first_bytes(out), seconds};
  const std::string how = WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                            : "signal " + std::to_string(WTERMSIG(status));
  const std::string why = last_line(err);
  return Error{ErrorCode::io,
               "'" + one_line(command) + "' failed with " + how + (why.empty() ? "" : ": " + why)};
}

}  // namespace tessera::bench
