// Opening an input file or pipe and telling formats apart by their first bytes; names and extensions do not
// count.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "codec/media/source.h"

namespace tessera {
namespace {

// Fills the head from the start: by position in a file, by reading from a pipe.
bool read_head(MediaInput& input) {
  while (input.head_size < input.head.size()) {
    char* to = input.head.data() + input.head_size;
    const size_t room = input.head.size() - input.head_size;
    const ssize_t n = input.seekable() ? pread(input.fd.get(), to, room, static_cast<off_t>(input.head_size))
                                       : ::read(input.fd.get(), to, room);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    input.head_size += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

Result<MediaInput> open_input(const std::string& path) {
  MediaInput input;
  const bool standard = path == "-";
  input.name = standard ? "standard input" : path;
  input.fd = UniqueFd(standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                               : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  const auto system_error = [&] { return read_error(ErrorCode::io, input.name, std::strerror(errno)); };
  if (input.fd.get() < 0) return system_error();
  struct stat status {};
  if (fstat(input.fd.get(), &status) != 0) return system_error();
  if (S_ISDIR(status.st_mode)) return read_error(ErrorCode::io, input.name, "it is a directory");
  if (isatty(input.fd.get())) {
    return read_error(ErrorCode::usage, input.name, "it is a terminal; expected a file or a pipe");
  }
  // A shared descriptor that somebody has read from already goes on from there, like a pipe.
  if (S_ISREG(status.st_mode) && lseek(input.fd.get(), 0, SEEK_CUR) == 0) input.size = status.st_size;
  if (!read_head(input)) return system_error();
  if (input.head_size == 0) return read_error(ErrorCode::format, input.name, "it is empty");
  return input;
}

bool suits_sndfile(const MediaInput& input) {
  using namespace std::string_view_literals;
  if (!input.seekable()) return false;  // libsndfile cannot have back the bytes that were looked at
  const std::string_view head(input.head.data(), input.head_size);
  const auto at = [head](size_t offset, std::string_view magic) {
    return head.size() >= offset + magic.size() && head.substr(offset, magic.size()) == magic;
  };
  const bool riff = at(0, "RIFF"sv) || at(0, "RIFX"sv) || at(0, "RF64"sv);
  const bool aiff = at(0, "FORM"sv) && (at(8, "AIFF"sv) || at(8, "AIFC"sv));
  // The first packet of an Ogg stream starts behind a page header of 27 bytes and one segment length.
  const bool ogg = at(0, "OggS"sv) && (at(28, "\x01vorbis"sv) || at(28,
                                                                    "\x7f"
                                                                    "FLAC"sv));
  return (riff && at(8, "WAVE"sv)) || aiff || ogg || at(0, "fLaC"sv) || at(0, ".snd"sv) || at(0, "caff"sv) ||
         at(0, "riff\x2e\x91\xcf\x11"sv);
}

}  // namespace tessera
