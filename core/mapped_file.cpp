#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tessera {
namespace {

Error io_error(const std::string& path, const std::string& what) {
  return {ErrorCode::io, path + ": " + what + ": " + std::strerror(errno)};
}

/// Closes a descriptor at the end of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever; it is refused below instead.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return io_error(path, "cannot open");
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return io_error(path, "cannot stat");
  if (S_ISDIR(status.st_mode)) return Error{ErrorCode::io, path + ": expected a file, got a directory"};
  if (!S_ISREG(status.st_mode))
    return Error{ErrorCode::io, path + ": expected a regular file, got a pipe or device"};
  if (status.st_size == 0) return Error{ErrorCode::format, path + ": the file is empty"};

  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return io_error(path, "cannot map " + std::to_string(size) + " bytes");
  return MappedFile(std::span(static_cast<const std::byte*>(data), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tessera
