// A range coder after G. N. N. Martin (1979): symbols with integer frequencies to bytes and back. 32 bits of
// range, carries resolved by counting waiting 0xff bytes; integer arithmetic only, so that every machine
// makes the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Appends to a byte vector. Ends with the fewest bytes that still say everything: the decoder reads zeros
/// behind them.
class RangeEncoder {
 public:
  static constexpr std::uint32_t max_total = 1u << 17;

  explicit RangeEncoder(std::vector<std::byte>& out) : out_(out), start_(out.size()) {}
  /// Codes a symbol that owns [low, low + frequency) of `total`; 1 <= frequency, low + frequency <= total <=
  /// max_total.
  void encode(std::uint32_t low, std::uint32_t frequency, std::uint32_t total);
  /// Writes what is pending; nothing may follow.
  void finish();

 private:
  void shift_low();

  std::vector<std::byte>& out_;
  std::size_t start_;
  std::uint64_t low_ = 0;  // 32 bits and a carry
  std::uint32_t range_ = 0xffffffff;
  std::uint8_t held_ = 0;      // the last byte, which a carry may still raise
  std::uint64_t held_ff_ = 0;  // 0xff bytes behind it
  bool holding_ = false;
};

/// Reads what RangeEncoder wrote. Any bytes decode to something: the caller checks what it gets.
class RangeDecoder {
 public:
  explicit RangeDecoder(std::span<const std::byte> in);
  /// Where in [0, total) the next symbol lies; call consume() with the symbol that owns this place.
  std::uint32_t target(std::uint32_t total);
  void consume(std::uint32_t low, std::uint32_t frequency);

 private:
  std::uint8_t next_byte();

  std::span<const std::byte> in_;
  std::size_t position_ = 0;
  std::uint32_t code_ = 0;  // offset of the coded number within the range
  std::uint32_t range_ = 0xffffffff;
  std::uint32_t unit_ = 0;  // range per unit of frequency, set by target()
};

}  // namespace tessera
