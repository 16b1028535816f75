// The command's exit codes, as docs/errors.md lists them for scripts.
#pragma once

#include "core/result.h"

namespace tessera::app {

enum class ExitCode : int {
  ok = 0,
  internal = 1,     ///< a mistake in this program
  usage = 2,        ///< options or arguments that cannot work
  io = 3,           ///< a file or pipe cannot be read or written
  format = 4,       ///< the input is not what it should be
  unsupported = 5,  ///< well-formed, but nothing here handles it
  mismatch = 6,     ///< two inputs do not belong together
  damaged = 7,      ///< part of the input is lost
};

constexpr ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::io:
      return ExitCode::io;
    case ErrorCode::format:
      return ExitCode::format;
    case ErrorCode::unsupported:
      return ExitCode::unsupported;
    case ErrorCode::mismatch:
      return ExitCode::mismatch;
    case ErrorCode::damaged:
      return ExitCode::damaged;
    case ErrorCode::usage:
      return ExitCode::usage;
  }
  return ExitCode::internal;
}

}  // namespace tessera::app
