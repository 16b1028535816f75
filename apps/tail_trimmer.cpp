// Values leave in the order they came: first what was held, then the front of what arrives.
#include "apps/tail_trimmer.h"

#include <algorithm>

namespace tessera::app {

void TailTrimmer::push(std::span<const float> values, Sink sink) {
  const std::size_t known = held_.size() + values.size();
  const std::size_t certain = known > hold_ ? known - hold_ : 0;
  const std::size_t from_held = std::min(certain, held_.size());
  const std::size_t from_new = certain - from_held;
  if (from_held > 0) sink(std::span(held_).first(from_held));
  if (from_new > 0) sink(values.first(from_new));
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(from_held));
  held_.insert(held_.end(), values.begin() + static_cast<std::ptrdiff_t>(from_new), values.end());
  passed_ += static_cast<std::int64_t>(certain);
}

std::int64_t TailTrimmer::finish(std::optional<std::int64_t> total, Sink sink) {
  const auto held = static_cast<std::int64_t>(held_.size());
  const std::int64_t rest = total ? std::clamp<std::int64_t>(*total - passed_, 0, held) : held;
  if (rest > 0) sink(std::span(held_).first(static_cast<std::size_t>(rest)));
  held_.clear();
  passed_ += rest;
  return passed_;
}

}  // namespace tessera::app
