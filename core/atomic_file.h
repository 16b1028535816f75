// An output file that appears under its name only when it is whole: written under a temporary name in the
// same folder, synced to disk and renamed by commit(); dropped before that, nothing is left behind. Left out:
// removing the temporary file (.tessera-<pid>-<n>.tmp) of a process that was killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace tessera {

class AtomicFile {
 public:
  /// Opens `path` for writing. "-" is standard output; it, FIFOs and devices (/dev/null) are written straight
  /// through. A symbolic link keeps pointing where it did: its target is replaced. A new file gets the
  /// permissions that the umask grants, a replaced one keeps its own. Error io: no such folder, a directory,
  /// not permitted.
  static Result<AtomicFile> create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  /// Appends. Error io (disk full, reader of the pipe gone).
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

  /// Overwrites bytes written earlier (a header). Only when seekable() (throws UsageError).
  Result<void> write_at(int64_t offset, std::span<const std::byte> bytes);

  /// Whether this is a regular file: write_at works and the file appears at commit().
  bool seekable() const { return seekable_; }

  /// Bytes appended by write().
  int64_t size() const { return size_; }

  /// The name for messages: the path, or "standard output".
  const std::string& name() const { return name_; }

  /// The open descriptor, for libraries that write by themselves; it stays owned here.
  int fd() const { return fd_; }

  /// Syncs and renames into place; closes. Nothing may be written after it. Error io: the name is untouched
  /// then.
  Result<void> commit();

 private:
  AtomicFile() = default;
  void discard() noexcept;

  int fd_ = -1;
  bool owns_fd_ = false;
  bool seekable_ = false;
  int64_t size_ = 0;
  std::string name_;       // as the user gave it
  std::string target_;     // links resolved; empty when written straight through
  std::string temporary_;  // empty when there is none (any more)
};

}  // namespace tessera
