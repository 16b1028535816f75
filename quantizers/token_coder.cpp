// Bit packing, and the choice of a coder.
#include "quantizers/token_coder.h"

#include <bit>
#include <string>

#include "quantizers/adaptive_coder.h"

namespace tessera {
namespace {

class PackingCoder : public TokenCoder {
 public:
  void encode(std::span<const std::int32_t> tokens, int codebook_size, std::vector<std::byte>& out) override {
    const int bits = token_bits(codebook_size);
    BitPacker packer(out);
    for (const std::int32_t token : tokens) packer.put(static_cast<std::uint32_t>(token), bits);
    packer.finish();
  }

  Result<void> decode(std::span<const std::byte> in, int codebook_size,
                      std::span<std::int32_t> tokens) override {
    const int bits = token_bits(codebook_size);
    const std::size_t expected = (tokens.size() * static_cast<std::size_t>(bits) + 7) / 8;
    if (in.size() != expected)
      return Error{ErrorCode::format, "expected " + std::to_string(expected) +
                                          " bytes of packed tokens, got " + std::to_string(in.size())};
    BitUnpacker unpacker(in);
    for (std::int32_t& token : tokens) {
      token = static_cast<std::int32_t>(unpacker.get(bits));
      if (token >= codebook_size)
        return Error{ErrorCode::format, "expected tokens below " + std::to_string(codebook_size) + ", got " +
                                            std::to_string(token)};
    }
    return {};
  }
};

}  // namespace

int token_bits(int codebook_size) {
  return std::bit_width(static_cast<std::uint32_t>(codebook_size - 1));
}

void BitPacker::put(std::uint32_t value, int bits) {
  pending_ |= value << pending_bits_;
  for (pending_bits_ += bits; pending_bits_ >= 8; pending_bits_ -= 8, pending_ >>= 8)
    out_.push_back(static_cast<std::byte>(pending_ & 0xff));
}

void BitPacker::finish() {
  if (pending_bits_ > 0) out_.push_back(static_cast<std::byte>(pending_));
  pending_ = 0;
  pending_bits_ = 0;
}

std::uint32_t BitUnpacker::get(int bits) {
  for (; pending_bits_ < bits; pending_bits_ += 8)
    pending_ |= static_cast<std::uint32_t>(in_[position_++]) << pending_bits_;
  const std::uint32_t value = pending_ & ((1u << bits) - 1);
  pending_ >>= bits;
  pending_bits_ -= bits;
  return value;
}

Result<std::unique_ptr<TokenCoder>> make_token_coder(EntropyCoder kind) {
  switch (kind) {
    case EntropyCoder::packed:
      return std::unique_ptr<TokenCoder>(std::make_unique<PackingCoder>());
    case EntropyCoder::adaptive:
      return make_adaptive_coder();
  }
  return Error{ErrorCode::unsupported, "expected entropy coder 0 (packed) or 1 (adaptive), got " +
                                           std::to_string(static_cast<int>(kind))};
}

}  // namespace tessera
