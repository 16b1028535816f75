// Questions and answers are lines of JSON over a pair of sockets.
#include "apps/bench/process_probe.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/bench/measurement.h"
#include "apps/bench/recordings.h"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;
constexpr unsigned kMostSeconds = 300;

bool send_line(int socket, const Json& object) {
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = send(socket, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

// None at the end of the connection.
std::optional<Json> receive_line(int socket) {
  std::string line;
  for (char c = 0;;) {
    const ssize_t count = recv(socket, &c, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    if (c == '\n') break;
    line += c;
  }
  return Json::parse(line, nullptr, false);
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

double peak_mib(int who) {
  rusage usage = {};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Result<ProcessUsage> measure_here(const RunnerFactory& make, const std::string& spec, const std::string& name,
                                  const std::string& recording) {
  const auto sound = read_recording(recording);
  if (!sound) return sound.error();
  malloc_trim(0);
  const double idle_mib = resident_mib();
  const auto start = std::chrono::steady_clock::now();
  const auto runner = make(spec);
  if (!runner) return runner.error();
  const auto points = (*runner)->points();
  const auto point =
      std::find_if(points.begin(), points.end(), [&](const auto& one) { return one.name == name; });
  if (point == points.end()) return Error{ErrorCode::usage, spec + ": no point " + name};
  const std::span<const float> pcm(sound->pcm);
  const std::size_t few = std::min(pcm.size(), static_cast<std::size_t>(sound->sample_rate_hz / 50));
  const auto begin =
      run_codec(**runner, *point, pcm.subspan((pcm.size() - few) / 2, few), sound->sample_rate_hz, {});
  if (!begin) return begin.error();
  const std::chrono::duration<double, std::milli> start_up = std::chrono::steady_clock::now() - start;
  const auto whole = run_codec(**runner, *point, pcm, sound->sample_rate_hz, {});
  if (!whole) return whole.error();
  ProcessUsage usage;
  usage.start_up_ms = start_up.count();
  usage.peak_memory_mib = std::max(peak_mib(RUSAGE_SELF) - idle_mib, peak_mib(RUSAGE_CHILDREN));
  return usage;
}

void answer(int socket, const RunnerFactory& make, const Json& question) {
  Json reply;
  try {
    const auto usage =
        measure_here(make, question.at("spec"), question.at("point"), question.at("recording"));
    if (usage) {
      reply = {{"memory", usage->peak_memory_mib}, {"start_up", usage->start_up_ms}};
    } else {
      reply = {{"error", usage.error().message}, {"code", static_cast<int>(usage.error().code)}};
    }
  } catch (const std::exception& error) {
    reply = {{"error", error.what()}, {"code", static_cast<int>(ErrorCode::unsupported)}};
  }
  send_line(socket, reply);
}

// What the forked process does until the other end of the socket is closed.
void serve(int socket, const RunnerFactory& make) {
  while (const auto question = receive_line(socket)) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kMostSeconds);
      answer(socket, make, *question);
      _exit(0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    // A child that ended well has answered.
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    send_line(socket, {{"error", "the process that measures memory died or took too long"},
                       {"code", static_cast<int>(ErrorCode::io)}});
  }
}

}  // namespace

Result<ProcessProbe> ProcessProbe::start(const RunnerFactory& make) {
  int ends[2] = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{ErrorCode::io, std::string("cannot open a socket: ") + std::strerror(errno)};
  }
  const pid_t server = fork();
  if (server == 0) {
    ::close(ends[0]);
    serve(ends[1], make);
    _exit(0);
  }
  ::close(ends[1]);
  if (server < 0) {
    ::close(ends[0]);
    return Error{ErrorCode::io, std::string("cannot start a process: ") + std::strerror(errno)};
  }
  return ProcessProbe(ends[0], server);
}

ProcessProbe::ProcessProbe(ProcessProbe&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), server_(std::exchange(other.server_, -1)) {}

ProcessProbe& ProcessProbe::operator=(ProcessProbe&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::exchange(other.socket_, -1);
    server_ = std::exchange(other.server_, -1);
  }
  return *this;
}

ProcessProbe::~ProcessProbe() {
  close();
}

void ProcessProbe::close() {
  if (socket_ < 0) return;
  ::close(std::exchange(socket_, -1));
  while (waitpid(server_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<ProcessUsage> ProcessProbe::measure(const std::string& spec, const std::string& point,
                                           const std::string& recording) {
  const Json question = {{"spec", spec}, {"point", point}, {"recording", recording}};
  std::optional<Json> reply;
  if (send_line(socket_, question)) reply = receive_line(socket_);
  if (!reply || !reply->is_object()) {
    return Error{ErrorCode::io, "the process that measures memory went away"};
  }
  if (reply->contains("error")) {
    return Error{static_cast<ErrorCode>(reply->value("code", 0)), reply->value("error", "")};
  }
  ProcessUsage usage;
  usage.peak_memory_mib = reply->value("memory", 0.0);
  usage.start_up_ms = reply->value("start_up", 0.0);
  return usage;
}

}  // namespace tessera::bench
