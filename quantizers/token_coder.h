// Tokens to bytes and back, one layer (one codebook of all channels in a run of frames) at a time. Two
// coders: plain packing with ceil(log2(size)) bits per token, and adaptive counts driving a range coder.
// docs/bitstream.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"

namespace tessera {

/// How tokens become bits; the values are stored in files.
enum class EntropyCoder : std::uint8_t { packed = 0, adaptive = 1 };

/// Bits of a packed token: the least that hold 0 to size - 1. `size` is 2 to 65536.
int token_bits(int codebook_size);

/// Appends numbers of 1 to 16 bits, the low bit first, to bytes filled from their low bit.
class BitPacker {
 public:
  explicit BitPacker(std::vector<std::byte>& out) : out_(out) {}
  void put(std::uint32_t value, int bits);
  /// Fills the last byte with zero bits.
  void finish();

 private:
  std::vector<std::byte>& out_;
  std::uint32_t pending_ = 0;
  int pending_bits_ = 0;
};

/// Reads what BitPacker wrote. The caller makes sure that the bytes hold as many bits as it asks for.
class BitUnpacker {
 public:
  explicit BitUnpacker(std::span<const std::byte> in) : in_(in) {}
  std::uint32_t get(int bits);

 private:
  std::span<const std::byte> in_;
  std::size_t position_ = 0;
  std::uint32_t pending_ = 0;
  int pending_bits_ = 0;
};

/// Codes layers of tokens, each by itself: nothing is remembered from one call to the next.
class TokenCoder {
 public:
  virtual ~TokenCoder() = default;
  /// Appends the tokens, each 0 to codebook_size - 1 (2 to 65536), to `out`.
  virtual void encode(std::span<const std::int32_t> tokens, int codebook_size,
                      std::vector<std::byte>& out) = 0;
  /// Fills `tokens` from exactly the bytes that encode() appended. Errors (format): too few or too many
  /// bytes, a token outside the codebook.
  virtual Result<void> decode(std::span<const std::byte> in, int codebook_size,
                              std::span<std::int32_t> tokens) = 0;
};

/// The coder of that kind; `kind` as found in a file. Errors (unsupported): not one of EntropyCoder.
Result<std::unique_ptr<TokenCoder>> make_token_coder(EntropyCoder kind);

}  // namespace tessera
