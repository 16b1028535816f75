#include "train/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace tessera::train {
namespace {

template <class... Format>
std::string to_text(double value, Format... format) {
  char text[400];  // the largest double has 309 digits before the point
  const auto end = std::to_chars(text, text + sizeof text, value, format...).ptr;
  return std::string(text, end);
}

std::string two_digits(std::int64_t value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

}  // namespace

std::string shortest(double value) {
  return to_text(value);
}

std::string rounded(double value) {
  return to_text(value, std::chars_format::general, 4);
}

std::string fixed(double value, int digits) {
  return to_text(value, std::chars_format::fixed, std::clamp(digits, 0, 60));
}

std::string clock_time(double seconds) {
  if (!(seconds < 1e9)) return "-";
  const std::int64_t total = std::llround(std::max(0.0, seconds));
  const std::int64_t hours = total / 3600, minutes = total / 60 % 60;
  return (hours ? std::to_string(hours) + ":" + two_digits(minutes) : std::to_string(minutes)) + ":" +
         two_digits(total % 60);
}

}  // namespace tessera::train
