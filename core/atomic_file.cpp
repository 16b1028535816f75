// The temporary file is made with O_EXCL rather than mkstemp, so that the umask gives it ordinary
// permissions.
#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

constexpr int kTemporaryNames = 10000;  // files that one process may have open in one folder, and leftovers

Error io_error(const std::string& what, const std::string& name, const std::string& why) {
  return Error{ErrorCode::io, "cannot " + what + " " + name + ": " + why};
}

Error system_error(const std::string& what, const std::string& name) {
  return io_error(what, name, std::strerror(errno));
}

// The file that a chain of links ends at, whether it exists yet or not.
Result<std::string> resolve_links(const std::string& path) {
  std::string target = path;
  for (int hops = 0; hops < 40; ++hops) {
    char link[PATH_MAX];
    const ssize_t length = readlink(target.c_str(), link, sizeof link);
    if (length < 0) return target;  // not a link, or nothing there
    const std::string next(link, static_cast<size_t>(length));
    const size_t slash = target.rfind('/');
    const bool relative = next.empty() || next[0] != '/';
    target = relative && slash != std::string::npos ? target.substr(0, slash + 1) + next : next;
  }
  return io_error("write", path, "too many symbolic links");
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Calls `put(data, size, done)` until all is written; signals only interrupt it.
template <class Put>
Result<void> write_all(std::span<const std::byte> bytes, const std::string& name, Put put) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = put(bytes.data() + done, bytes.size() - done, done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", name);
    done += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.empty()) return io_error("write", "the output", "its name is empty");
  AtomicFile file;
  file.name_ = path;
  if (path == "-") {
    file.name_ = "standard output";
    file.fd_ = STDOUT_FILENO;
    return file;
  }
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (!exists && errno == EACCES) return system_error("write", path);
  if (exists && S_ISDIR(status.st_mode)) return io_error("write", path, "it is a directory");
  if (exists && !S_ISREG(status.st_mode)) {
    file.fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file.fd_ < 0) return system_error("write", path);
    file.owns_fd_ = true;
    return file;
  }
  // Renaming needs only the folder; a file that its owner protected is still left alone.
  if (exists && access(path.c_str(), W_OK) != 0) return system_error("write", path);
  auto target = resolve_links(path);
  if (!target) return target.error();
  file.target_ = *target;
  const std::string folder = folder_of(file.target_);
  if (stat(folder.empty() ? "." : folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return io_error("write", path, "there is no folder " + folder);
  }
  if (file.target_.size() == folder.size()) return io_error("write", path, "it names a folder");

  const std::string stem = folder + ".tessera-" + std::to_string(getpid()) + "-";
  for (int i = 0; i < kTemporaryNames && file.fd_ < 0; ++i) {
    file.temporary_ = stem + std::to_string(i) + ".tmp";
    file.fd_ = open(file.temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd_ < 0 && errno != EEXIST) break;
  }
  if (file.fd_ < 0) {
    file.temporary_.clear();
    return io_error("write", path,
                    "its folder takes no new file (" + std::string(std::strerror(errno)) + ")");
  }
  file.owns_fd_ = file.seekable_ = true;
  if (exists && stat(path.c_str(), &status) == 0 && fchmod(file.fd_, status.st_mode & 0777) != 0) {
    return system_error("set the permissions of", path);
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept {
  *this = std::move(other);
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  fd_ = std::exchange(other.fd_, -1);
  owns_fd_ = std::exchange(other.owns_fd_, false);
  seekable_ = other.seekable_;
  size_ = other.size_;
  name_ = std::move(other.name_);
  target_ = std::move(other.target_);
  temporary_ = std::exchange(other.temporary_, {});
  return *this;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() noexcept {
  if (owns_fd_) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  fd_ = -1;
  owns_fd_ = false;
  temporary_.clear();
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) fail("atomic_file", "an open file", "a write after commit or move");
  auto written = write_all(
      bytes, name_, [this](const std::byte* data, size_t size, size_t) { return ::write(fd_, data, size); });
  if (written) size_ += static_cast<int64_t>(bytes.size());
  return written;
}

Result<void> AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  if (fd_ < 0 || !seekable_) fail("atomic_file", "an open regular file", "write_at on " + name_);
  return write_all(bytes, name_, [this, offset](const std::byte* data, size_t size, size_t done) {
    return pwrite(fd_, data, size, offset + static_cast<int64_t>(done));
  });
}

Result<void> AtomicFile::commit() {
  if (fd_ < 0) fail("atomic_file", "an open file", "a second commit");
  if (!seekable_) {
    const bool closed = !owns_fd_ || close(fd_) == 0;
    fd_ = -1;
    owns_fd_ = false;
    if (!closed) return system_error("write", name_);
    return {};
  }
  Result<void> result;
  if (fsync(fd_) != 0) result = system_error("write", name_);
  owns_fd_ = false;
  if (close(std::exchange(fd_, -1)) != 0 && result) result = system_error("write", name_);
  if (result && std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    result = system_error("put in place", name_);
  }
  if (result) temporary_.clear();
  discard();  // a failed file goes away
  return result;
}

}  // namespace tessera
