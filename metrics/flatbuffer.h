// Reads tables of a FlatBuffers file of unknown trust. Every offset is checked: one that leads outside the
// bytes throws ResultError (format). No schema: fields are asked for by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace tessera::metrics {

class FlatTable;

/// The bytes of a file and its name.
class FlatBuffer {
 public:
  FlatBuffer(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  FlatTable root() const;
  /// The four characters that say what file it is; empty if it is too short for them.
  std::string_view identifier() const {
    if (bytes_.size() < 8) return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + 4, 4};
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw ResultError({ErrorCode::format, name_ + ": " + what});
  }
  /// `count` bytes at `at`.
  std::span<const std::byte> bytes(std::size_t at, std::size_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) {
      fail("expected " + std::to_string(count) + " bytes at " + std::to_string(at) + ", the file has " +
           std::to_string(bytes_.size()));
    }
    return bytes_.subspan(at, count);
  }
  template <class T>
  T read(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes(at, sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// Where the offset stored at `at` points.
  std::size_t follow(std::size_t at) const { return at + read<std::uint32_t>(at); }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

/// A vector inside the file: `size` elements from `begin` on.
struct FlatVector {
  std::size_t begin = 0, size = 0;
};

class FlatTable {
 public:
  FlatTable(const FlatBuffer& file, std::size_t at) : file_(&file), at_(at) {
    const auto to_fields = file.read<std::int32_t>(at);
    const std::int64_t fields = static_cast<std::int64_t>(at) - to_fields;
    if (fields < 0) file.fail("a table at " + std::to_string(at) + " has its fields before the file");
    fields_ = static_cast<std::size_t>(fields);
    fields_bytes_ = file.read<std::uint16_t>(fields_);
  }

  template <class T>
  T number(int field, T otherwise) const {
    const std::size_t at = position(field);
    return at ? file_->read<T>(at) : otherwise;
  }
  std::string_view text(int field) const {
    const FlatVector v = vector(field, 1);
    const auto bytes = file_->bytes(v.begin, v.size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A vector of elements of `element_bytes`; empty where the field is absent.
  FlatVector vector(int field, std::size_t element_bytes) const {
    const std::size_t at = position(field);
    if (!at) return {};
    const std::size_t start = file_->follow(at);
    const FlatVector v{start + 4, file_->read<std::uint32_t>(start)};
    (void)file_->bytes(v.begin, v.size * element_bytes);
    return v;
  }
  /// The table in a field, or nothing.
  std::optional<FlatTable> child(int field) const {
    const std::size_t at = position(field);
    if (!at) return std::nullopt;
    return FlatTable(*file_, file_->follow(at));
  }
  /// Element `i` of a vector of tables.
  FlatTable table(const FlatVector& v, std::size_t i) const {
    return FlatTable(*file_, file_->follow(v.begin + 4 * i));
  }
  /// Element `i` of a vector of numbers.
  template <class T>
  T element(const FlatVector& v, std::size_t i) const {
    return file_->read<T>(v.begin + sizeof(T) * i);
  }
  const FlatBuffer& file() const { return *file_; }

 private:
  // 0 where the field is absent.
  std::size_t position(int field) const {
    const std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
    if (entry + 2 > fields_bytes_) return 0;
    const auto offset = file_->read<std::uint16_t>(fields_ + entry);
    return offset ? at_ + offset : 0;
  }

  const FlatBuffer* file_;
  std::size_t at_, fields_ = 0, fields_bytes_ = 0;
};

inline FlatTable FlatBuffer::root() const {
  return FlatTable(*this, follow(0));
}

}  // namespace tessera::metrics
