// Cuts a stream to a length that is only known at its end, as a .tsr file states it in its trailer:
// everything but the last `hold` samples goes straight through, so memory does not grow with the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/function_ref.h"

namespace tessera::app {

class TailTrimmer {
 public:
  using Sink = FunctionRef<void(std::span<const float>)>;

  /// Keeps up to `hold` values back: how much may be cut off.
  explicit TailTrimmer(std::size_t hold) : hold_(hold) {}

  /// Takes any number of values, hands over those that the end cannot cut.
  void push(std::span<const float> values, Sink sink);
  /// Ends the stream after `total` values in all (nothing: after those pushed) and hands over what belongs to
  /// it. Returns how many went out in all: other than `total` when it lies outside what was pushed and held.
  std::int64_t finish(std::optional<std::int64_t> total, Sink sink);

 private:
  std::size_t hold_;
  std::int64_t passed_ = 0;
  std::vector<float> held_;
};

}  // namespace tessera::app
