// Where a reader's bytes come from: a file, a pipe, memory. Seeking is optional; the container never needs
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/byte_sink.h"
#include "core/result.h"

namespace tessera {

/// Reads forward. `seek` and `size` are there when the source can do it.
struct ByteSource {
  /// Fills some of the buffer, at least one byte, and says how many; 0 means the end. Errors: io.
  std::function<Result<std::size_t>(std::span<std::byte>)> read;
  /// Goes to an absolute offset; empty for a pipe. Errors: io.
  std::function<Result<void>(std::uint64_t)> seek;
  std::optional<std::uint64_t> size;  ///< bytes in all; nothing for a pipe
};

/// The bytes of `data`, which must outlive the source.
ByteSource memory_source(std::span<const std::byte> data);
/// A file, or standard input for "-". It can seek when it is a regular file. Errors: io.
Result<ByteSource> file_source(const std::string& path);
/// The end of a file, which need not exist yet, for appending a stream to it. Nothing is buffered here.
/// Errors: io. (New files: core/atomic_file.h.)
Result<ByteSink> append_sink(const std::string& path);

}  // namespace tessera
