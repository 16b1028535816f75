// Numbers in messages.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::train {

/// "3.20": a value >= 0 with two decimals, whatever the locale.
inline std::string two_decimals(double value) {
  const auto hundredths = static_cast<std::int64_t>(value * 100 + 0.5);
  const std::int64_t rest = hundredths % 100;
  return std::to_string(hundredths / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest);
}

}  // namespace tessera::train
