// The range coder against the entropy it should reach, both token coders on round trips, and what they make
// of bad bytes.
#include "quantizers/token_coder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quantizers/range_coder.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::byte>;
using Tokens = std::vector<std::int32_t>;

std::size_t packed_bytes(std::size_t tokens, int size) {
  return (tokens * static_cast<std::size_t>(token_bits(size)) + 7) / 8;
}

Bytes encode(EntropyCoder kind, const Tokens& tokens, int size) {
  Bytes bytes;
  make_token_coder(kind).value()->encode(tokens, size, bytes);
  return bytes;
}

Tokens uniform(std::mt19937& random, std::size_t count, int size) {
  Tokens tokens(count);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(size));
  return tokens;
}

TEST(RangeCoder, ReturnsWhatWasCodedAtTheCostOfItsEntropy) {
  std::mt19937 random(1);
  for (const std::uint32_t total : {2u, 3u, 255u, 65537u, RangeEncoder::max_total}) {
    struct Symbol {
      std::uint32_t low, frequency;
    };
    std::vector<Symbol> symbols(3000);
    double bits = 0;
    for (Symbol& symbol : symbols) {
      const std::uint32_t a = random() % total, b = random() % total;
      // A third of the symbols rare, at either end: these make long runs of carries.
      symbol = random() % 3 == 0 ? Symbol{random() % 2 == 0 ? 0 : total - 1, 1}
                                 : Symbol{std::min(a, b), std::max(a, b) - std::min(a, b) + 1};
      bits -= std::log2(static_cast<double>(symbol.frequency) / total);
    }
    Bytes bytes(3, std::byte{7});  // what lies before is kept
    RangeEncoder encoder(bytes);
    for (const Symbol& symbol : symbols) encoder.encode(symbol.low, symbol.frequency, total);
    encoder.finish();
    EXPECT_EQ(bytes[2], std::byte{7});
    EXPECT_LT(static_cast<double>(bytes.size() - 3) * 8, bits * 1.005 + 32) << total;
    RangeDecoder decoder{std::span(bytes).subspan(3)};
    for (const Symbol& symbol : symbols) {
      const std::uint32_t place = decoder.target(total);
      ASSERT_GE(place, symbol.low);
      ASSERT_LT(place, symbol.low + symbol.frequency);
      decoder.consume(symbol.low, symbol.frequency);
    }
  }
}

TEST(RangeCoder, CarriesThroughRunsOfFf) {
  // The top share of everything, again and again: the number stays just below a power of two until the last
  // symbol.
  for (int count = 1; count < 200; ++count) {
    Bytes bytes;
    RangeEncoder encoder(bytes);
    for (int i = 0; i < count; ++i) encoder.encode(255, 1, 256);
    encoder.encode(1, 1, 3);
    encoder.finish();
    RangeDecoder decoder(bytes);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(decoder.target(256), 255u) << i << " of " << count;
      decoder.consume(255, 1);
    }
    ASSERT_EQ(decoder.target(3), 1u);
  }
}

TEST(RangeCoder, NothingCodedIsNoBytes) {
  Bytes bytes;
  RangeEncoder(bytes).finish();
  EXPECT_TRUE(bytes.empty());
}

TEST(BitPacker, LowBitsComeFirst) {
  Bytes bytes;
  BitPacker packer(bytes);
  packer.put(0x5, 3);     // 101
  packer.put(0x7ff, 11);  // 1 x 11
  packer.put(0x2, 4);     // 0010
  packer.finish();
  EXPECT_EQ(bytes, (Bytes{std::byte{0xfd}, std::byte{0xbf}, std::byte{0x00}}));
}

TEST(TokenCoder, BitsOfACodebook) {
  for (const auto& [size, bits] :
       {std::pair{2, 1}, {3, 2}, {4, 2}, {1000, 10}, {1024, 10}, {1025, 11}, {65536, 16}})
    EXPECT_EQ(token_bits(size), bits);
}

TEST(TokenCoder, RoundTripsAnyTokensOfAnySize) {
  std::mt19937 random(2);
  for (const EntropyCoder kind : {EntropyCoder::packed, EntropyCoder::adaptive}) {
    const auto coder =
        make_token_coder(kind).value();  // one coder for all: no call may leave anything to the next
    for (const int size : {2, 3, 4, 5, 255, 1000, 2048, 65535, 65536}) {
      for (const std::size_t count : {0, 1, 2, 3, 44, 129, 1000}) {
        for (int skew = 0; skew < 3; ++skew) {
          Tokens tokens = uniform(random, count, size);
          for (auto& token : tokens)
            if (skew == 1 && random() % 8 != 0) token = size - 1;
          if (skew == 2) tokens.assign(count, size / 2);
          Bytes bytes(1, std::byte{9});
          coder->encode(tokens, size, bytes);
          Tokens decoded(count, -1);
          ASSERT_TRUE(coder->decode(std::span(bytes).subspan(1), size, decoded)) << size << " " << count;
          ASSERT_EQ(decoded, tokens) << size << " " << count << " " << skew;
          if (kind == EntropyCoder::packed) {
            ASSERT_EQ(bytes.size() - 1, packed_bytes(count, size));
          }
        }
      }
    }
  }
}

TEST(TokenCoder, RoundTripsLayersLongEnoughToHalveTheCounts) {
  std::mt19937 random(3);
  for (const int size : {2, 65536}) {
    const Tokens tokens = uniform(random, 150000, size);
    const Bytes bytes = encode(EntropyCoder::adaptive, tokens, size);
    Tokens decoded(tokens.size());
    ASSERT_TRUE(make_token_coder(EntropyCoder::adaptive).value()->decode(bytes, size, decoded));
    EXPECT_EQ(decoded, tokens);
  }
}

TEST(AdaptiveCoder, BeatsPackingWhereThereIsSomethingToLearn) {
  std::mt19937 random(4);
  const auto ratio = [&](const Tokens& tokens, int size) {
    return static_cast<double>(encode(EntropyCoder::adaptive, tokens, size).size()) /
           static_cast<double>(packed_bytes(tokens.size(), size));
  };
  EXPECT_LT(ratio(Tokens(44, 1234), 2048), 0.08);  // silence
  Tokens half = uniform(random, 44, 2048);         // speech, then silence
  std::fill(half.begin() + 22, half.end(), 77);
  EXPECT_LT(ratio(half, 2048), 0.65);
  Tokens alternating(44);  // a hum between two codes
  for (std::size_t i = 0; i < 44; ++i) alternating[i] = i % 2 == 0 ? 3 : 2000;
  EXPECT_LT(ratio(alternating, 2048), 0.2);
  std::geometric_distribution<int> geometric(0.3);  // 2.9 bits of entropy in 10
  Tokens skewed(500);
  for (auto& token : skewed) token = std::min(geometric(random), 1023);
  EXPECT_LT(ratio(skewed, 1024), 0.36);
}

TEST(AdaptiveCoder, CostsLittleWhereThereIsNothingToLearn) {
  std::mt19937 random(5);
  for (const int size : {256, 1024, 2048, 65536}) {
    const Tokens tokens = uniform(random, 44, size);
    EXPECT_LE(encode(EntropyCoder::adaptive, tokens, size).size(), packed_bytes(44, size) + 5) << size;
  }
  // 5 of 8: the range coder uses what packing leaves empty.
  const Tokens tokens = uniform(random, 20000, 5);
  EXPECT_LT(encode(EntropyCoder::adaptive, tokens, 5).size(), packed_bytes(20000, 5) * 0.78);
}

TEST(TokenCoder, PackedBytesMustFit) {
  const auto coder = make_token_coder(EntropyCoder::packed).value();
  Tokens tokens(8);
  const Bytes bytes(11, std::byte{0xff});
  EXPECT_TRUE(coder->decode(bytes, 2048, tokens));
  EXPECT_FALSE(coder->decode(std::span(bytes).first(10), 2048, tokens));
  const auto outside = coder->decode(bytes, 2047, tokens);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().message, "expected tokens below 2047, got 2047");
}

TEST(AdaptiveCoder, AnyBytesGiveTokensOfTheCodebook) {
  std::mt19937 random(6);
  const auto coder = make_token_coder(EntropyCoder::adaptive).value();
  for (int round = 0; round < 300; ++round) {
    const int size = 2 + static_cast<int>(random() % 3000);
    Bytes bytes(1 + random() % 60);
    for (auto& byte : bytes) byte = static_cast<std::byte>(round % 3 == 0 ? 0xff : random());
    Tokens tokens(bytes.size() * 128, -1);
    ASSERT_TRUE(coder->decode(bytes, size, tokens));
    for (const std::int32_t token : tokens) ASSERT_TRUE(token >= 0 && token < size);
    tokens.push_back(0);
    EXPECT_FALSE(coder->decode(bytes, size, tokens)) << "more than 128 tokens per byte";
  }
}

TEST(TokenCoder, UnknownKindsAreRefused) {
  const auto coder = make_token_coder(static_cast<EntropyCoder>(7));
  ASSERT_FALSE(coder);
  EXPECT_EQ(coder.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace tessera
