// The `tessera` command: parses, runs one sub-command, turns errors into one line on stderr and an exit code
// (docs/errors.md).
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <variant>

#include "apps/commands.h"
#include "core/cpu.h"

namespace tessera::app {
namespace {

// The reader of our standard output went away (`| head`): it knows, so there is nothing to tell.
bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

ExitCode fail_with(const Report& report, const Error& error) {
  const bool is_output =
      error.code == ErrorCode::io && error.message.find("standard output") != std::string::npos;
  if (!is_output || !reader_is_gone()) report.error(error.message);
  return exit_code_of(error.code);
}

ExitCode run_program(int argc, char** argv) {
  Interrupt interrupt;
  auto [name, command] = parse_command_line(argc, argv);
  const ReportOptions options =
      command ? std::visit([](const auto& parsed) { return parsed.report; }, *command) : ReportOptions{};
  Report report(name, options);
  if (!command) return fail_with(report, command.error());
  if (const auto set = set_cpu_target_from_environment(); !set) return fail_with(report, set.error());
  Session session{report, interrupt};
  try {
    const auto result = std::visit([&](const auto& parsed) { return run(parsed, session); }, *command);
    if (!result) return fail_with(report, result.error());
    if (std::ferror(stdout) != 0) return fail_with(report, {ErrorCode::io, "cannot write standard output"});
    return *result;
  } catch (const std::bad_alloc&) {
    report.error("out of memory");
  } catch (const std::exception& error) {
    report.error(std::string("internal error: ") + error.what());
  }
  return ExitCode::internal;
}

}  // namespace
}  // namespace tessera::app

// What can throw outside the try block has no memory for a message either.
int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  return static_cast<int>(tessera::app::run_program(argc, argv));
}
