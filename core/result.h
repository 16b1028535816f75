// Bad data from outside (a file, a stream, a peer) comes back as a Result with a reason that a user can act
// on. Mistakes in the program throw UsageError instead (core/error.h). docs/errors.md lists both.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tessera {

/// What kind of trouble; the command turns it into its exit code (docs/errors.md).
enum class ErrorCode {
  io,           ///< cannot open, read, write or rename
  format,       ///< the bytes are not what the format says
  unsupported,  ///< well-formed, but nothing here handles it
  mismatch,     ///< two inputs do not belong together (file and model, state and model)
  damaged,      ///< part of the data is lost; what could be saved was saved
  usage,        ///< an option or argument that cannot work
};

/// A reason: one line, lower case, names what was expected and what came.
struct Error {
  ErrorCode code = ErrorCode::format;
  std::string message;
};

/// Thrown by Result::value() on an error: for programs that want exceptions.
class ResultError : public std::runtime_error {
 public:
  explicit ResultError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// Either a T or an Error. Test it (`if (!r) return r.error();`), then use `*r`; or call value(), which
/// throws.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }
  /// The value; throws ResultError on an error.
  T value() && {
    if (!*this) throw ResultError(error());
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return !error_; }
  const Error& error() const { return *error_; }
  /// Throws ResultError on an error.
  void value() const {
    if (error_) throw ResultError(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace tessera
