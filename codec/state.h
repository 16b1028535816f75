// The state of a stream as a value: copy it to fork the stream, save it to go on later or in another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"

namespace tessera {

enum class StreamKind : std::uint8_t { encoder = 1, decoder = 2 };

/// One flat, position-independent block of bytes, 64-byte aligned. A saved state is checked for accidents,
/// not for malice: restore only what a process of your own has saved.
class State {
 public:
  State(StreamKind kind, std::uint64_t weights_hash, std::size_t bytes);
  State(const State& other);
  State& operator=(const State& other);
  State(State&&) noexcept = default;
  State& operator=(State&&) noexcept = default;

  std::byte* data() { return static_cast<std::byte*>(block_.get()); }
  const std::byte* data() const { return static_cast<const std::byte*>(block_.get()); }
  std::size_t size() const { return size_; }
  bool operator==(const State& other) const;

  /// Bytes that restore() takes back, with a header that says which weights and kind of stream they belong
  /// to.
  std::vector<std::byte> save() const;
  /// Replaces the block. Errors: format (not a state, damaged), mismatch (of other weights or the other
  /// kind).
  Result<void> restore(std::span<const std::byte> saved);

 private:
  StreamKind kind_;
  std::uint64_t weights_hash_;
  std::size_t size_;
  std::shared_ptr<void> block_;  // owned by this state alone
};

}  // namespace tessera
