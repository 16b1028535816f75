// A file's bytes, mapped read-only, and the matching way to write a whole file. POSIX only (mmap). The
// mapping is a snapshot of nothing: a file that another program truncates meanwhile raises SIGBUS on access,
// as with any mapping.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"

namespace tessera {

/// Owns one read-only mapping of a regular, non-empty file. Movable, not copyable.
class MappedFile {
 public:
  /// Errors (io): missing, not readable, a directory or other special file; (format): empty. Never blocks on
  /// a pipe.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// The whole file; starts on a page boundary; valid while this object lives (moving it keeps the address).
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace tessera
