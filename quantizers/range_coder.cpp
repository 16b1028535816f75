// Range coder: range_ stays at 2^24 or above, so a frequency of 1 in 2^17 still owns at least 128 of it.
#include "quantizers/range_coder.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::uint32_t kLeastRange = 1u << 24;

}  // namespace

void RangeEncoder::encode(std::uint32_t low, std::uint32_t frequency, std::uint32_t total) {
  const std::uint32_t unit = range_ / total;
  low_ += std::uint64_t{unit} * low;
  range_ = unit * frequency;
  while (range_ < kLeastRange) {
    range_ <<= 8;
    shift_low();
  }
}

void RangeEncoder::shift_low() {
  const bool carry = low_ >> 32 != 0;
  if (carry || low_ < 0xff000000) {  // the byte held cannot change any more
    if (holding_) out_.push_back(static_cast<std::byte>(held_ + (carry ? 1 : 0)));
    for (; held_ff_ > 0; --held_ff_) out_.push_back(carry ? std::byte{0} : std::byte{0xff});
    held_ = static_cast<std::uint8_t>(low_ >> 24);
    holding_ = true;
  } else {
    ++held_ff_;
  }
  low_ = (low_ & 0x00ffffff) << 8;
}

void RangeEncoder::finish() {
  // Any number in [low_, low_ + range_) says the same: take the one with the most zero bytes at its end.
  for (int zero_bits = 32; zero_bits >= 0; zero_bits -= 8) {
    const std::uint64_t mask = (std::uint64_t{1} << zero_bits) - 1;
    const std::uint64_t rounded = (low_ + mask) & ~mask;
    if (rounded < low_ + range_) {
      low_ = rounded;
      break;
    }
  }
  for (int byte = 0; byte < 5; ++byte) shift_low();
  while (out_.size() > start_ && out_.back() == std::byte{0}) out_.pop_back();
}

RangeDecoder::RangeDecoder(std::span<const std::byte> in) : in_(in) {
  for (int byte = 0; byte < 4; ++byte) code_ = (code_ << 8) | next_byte();
}

std::uint32_t RangeDecoder::target(std::uint32_t total) {
  unit_ = range_ / total;
  return std::min(code_ / unit_, total - 1);
}

void RangeDecoder::consume(std::uint32_t low, std::uint32_t frequency) {
  code_ -= unit_ * low;
  range_ = unit_ * frequency;
  while (range_ < kLeastRange) {
    range_ <<= 8;
    code_ = (code_ << 8) | next_byte();
  }
}

std::uint8_t RangeDecoder::next_byte() {
  return position_ < in_.size() ? static_cast<std::uint8_t>(in_[position_++]) : std::uint8_t{0};
}

}  // namespace tessera
