// Any bytes as a token file (and as any other .npy array): no crash, and tokens that are accepted survive
// being written and read again. The first byte chooses the format and what is expected.
#include <cstdlib>

#include "codec/token_file.h"
#include "core/npy.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace tessera;
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  if ((choice & 3) == 3) {
    const auto array = parse_npy(bytes, "fuzz");
    require(!array || array->bytes() <= bytes.size());
    return 0;
  }
  const auto format = static_cast<TokenFormat>(choice & 3);
  TokenLayout expected;
  expected.channels = static_cast<int>(choice >> 2 & 3);
  expected.codebooks = static_cast<int>(choice >> 4 & 7);
  if (choice & 128) expected.codebook_sizes.assign(static_cast<std::size_t>(expected.codebooks), 1024);

  const auto tokens = parse_tokens(bytes, format, expected, "fuzz");
  if (!tokens) return 0;
  std::vector<std::byte> out;
  TokenWriter writer(
      [&out](std::span<const std::byte> piece) {
        out.insert(out.end(), piece.begin(), piece.end());
        return Result<void>();
      },
      format, tokens->layout);
  for (std::int64_t frame = 0; frame < tokens->frames; ++frame)
    require(bool(writer.push(tokens->frame(frame))));
  require(bool(writer.finish()));
  const auto again = parse_tokens(out, format, tokens->layout, "again");
  require(again && again->frames == tokens->frames && again->values == tokens->values);
  return 0;
}
