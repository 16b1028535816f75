#include "codec/state.h"

#include <cstring>
#include <string>

#include "core/aligned_memory.h"
#include "core/hash.h"
#include "core/workspace.h"

namespace tessera {
namespace {

// A saved state: magic, version, kind, three zero bytes, hash of the weights, size and hash of the block, the
// block.
constexpr char kMagic[8] = {'T', 'S', 'R', 's', 't', 'a', 't', 'e'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + 3 * 8;

template <class T>
void put(std::byte*& to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) *to++ = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T take(const std::byte*& from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(std::to_integer<T>(*from++) << (8 * i));
  return value;
}

}  // namespace

State::State(StreamKind kind, std::uint64_t weights_hash, std::size_t bytes)
    : kind_(kind),
      weights_hash_(weights_hash),
      size_(Workspace::padded(bytes)),
      block_(allocate_aligned(size_)) {
  std::memset(data(), 0, size_);
}

State::State(const State& other) : State(other.kind_, other.weights_hash_, other.size_) {
  std::memcpy(data(), other.data(), size_);
}

State& State::operator=(const State& other) {
  if (this != &other) *this = State(other);
  return *this;
}

bool State::operator==(const State& other) const {
  return kind_ == other.kind_ && weights_hash_ == other.weights_hash_ && size_ == other.size_ &&
         std::memcmp(data(), other.data(), size_) == 0;
}

std::vector<std::byte> State::save() const {
  std::vector<std::byte> saved(kHeaderBytes + size_);
  std::byte* to = saved.data();
  std::memcpy(to, kMagic, sizeof kMagic);
  to += sizeof kMagic;
  put(to, kVersion);
  put(to, static_cast<std::uint32_t>(kind_));
  put(to, weights_hash_);
  put(to, static_cast<std::uint64_t>(size_));
  put(to, content_hash({data(), size_}));
  std::memcpy(to, data(), size_);
  return saved;
}

Result<void> State::restore(std::span<const std::byte> saved) {
  if (saved.size() < kHeaderBytes || std::memcmp(saved.data(), kMagic, sizeof kMagic) != 0) {
    return Error{ErrorCode::format, "state: expected a saved stream state, got " +
                                        std::to_string(saved.size()) + " bytes of something else"};
  }
  const std::byte* from = saved.data() + sizeof kMagic;
  const auto version = take<std::uint32_t>(from), kind = take<std::uint32_t>(from);
  const auto weights = take<std::uint64_t>(from), size = take<std::uint64_t>(from),
             hash = take<std::uint64_t>(from);
  if (version != kVersion) {
    return Error{ErrorCode::unsupported,
                 "state: expected version " + std::to_string(kVersion) + ", got " + std::to_string(version)};
  }
  if (kind != static_cast<std::uint32_t>(kind_)) {
    return Error{ErrorCode::mismatch, kind_ == StreamKind::encoder
                                          ? "state: expected an encoder's, got another kind"
                                          : "state: expected a decoder's, got another kind"};
  }
  if (weights != weights_hash_) {
    return Error{ErrorCode::mismatch,
                 "state: expected one of weights " + hex(weights_hash_) + ", got " + hex(weights)};
  }
  if (size != size_ || saved.size() != kHeaderBytes + size_) {
    return Error{ErrorCode::format, "state: expected " + std::to_string(kHeaderBytes + size_) +
                                        " bytes, got " + std::to_string(saved.size())};
  }
  if (hash != content_hash(saved.subspan(kHeaderBytes)))
    return Error{ErrorCode::format, "state: damaged, its hash does not match"};
  std::memcpy(data(), from, size_);
  return {};
}

}  // namespace tessera
