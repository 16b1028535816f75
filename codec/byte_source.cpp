// Sources over memory and file descriptors. A pipe's bytes come through as they arrive: nothing waits to fill
// a buffer.
#include "codec/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tessera {
namespace {

/// Owns a file descriptor, unless it is a standard one.
class Descriptor {
 public:
  Descriptor(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  int fd() const { return fd_; }
  Error error(const std::string& what) const {
    return {ErrorCode::io, "cannot " + what + " " + name_ + ": " + std::strerror(errno)};
  }

 private:
  int fd_;
  std::string name_;
};

}  // namespace

ByteSource memory_source(std::span<const std::byte> data) {
  const auto position = std::make_shared<std::size_t>(0);
  ByteSource source;
  source.read = [data, position](std::span<std::byte> out) -> Result<std::size_t> {
    const std::size_t bytes = std::min(out.size(), data.size() - *position);
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(*position), bytes, out.begin());
    *position += bytes;
    return bytes;
  };
  source.seek = [data, position](std::uint64_t offset) -> Result<void> {
    *position = static_cast<std::size_t>(std::min<std::uint64_t>(offset, data.size()));
    return {};
  };
  source.size = data.size();
  return source;
}

Result<ByteSource> file_source(const std::string& path) {
  const auto file =
      path == "-" ? std::make_shared<const Descriptor>(STDIN_FILENO, "standard input")
                  : std::make_shared<const Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  if (file->fd() < 0) return file->error("open");
  struct stat status {};
  if (::fstat(file->fd(), &status) != 0) return file->error("read");
  if (S_ISDIR(status.st_mode)) return Error{ErrorCode::io, "cannot read " + path + ": it is a directory"};
  ByteSource source;
  source.read = [file](std::span<std::byte> out) -> Result<std::size_t> {
    ssize_t bytes = 0;
    do {
      bytes = ::read(file->fd(), out.data(), out.size());
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) return file->error("read");
    return static_cast<std::size_t>(bytes);
  };
  if (S_ISREG(status.st_mode) && path != "-") {
    source.seek = [file](std::uint64_t offset) -> Result<void> {
      if (::lseek(file->fd(), static_cast<off_t>(offset), SEEK_SET) < 0) return file->error("seek in");
      return {};
    };
    source.size = static_cast<std::uint64_t>(status.st_size);
  }
  return source;
}

Result<ByteSink> append_sink(const std::string& path) {
  constexpr mode_t kAnyone = 0666;  // less what the umask takes
  const auto file = std::make_shared<const Descriptor>(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kAnyone), path);
  if (file->fd() < 0) return file->error("write");
  return ByteSink([file](std::span<const std::byte> bytes) -> Result<void> {
    while (!bytes.empty()) {
      const ssize_t done = ::write(file->fd(), bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return file->error("write");
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
  });
}

}  // namespace tessera
