// A mistake in the program throws: the op, what it expected and what it got. Data from outside uses
// core/result.h.
#pragma once

#include <stdexcept>
#include <string>

namespace tessera {

/// The library was called in a way that cannot work; `what()` reads `[op] expected ..., got ...`.
class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws UsageError("[op] expected <expected>, got <got>").
[[noreturn]] inline void fail(const std::string& op, const std::string& expected, const std::string& got) {
  throw UsageError("[" + op + "] expected " + expected + ", got " + got);
}

}  // namespace tessera
