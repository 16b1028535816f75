// The seam between the reader and what decodes: libsndfile (linked) or FFmpeg (in the module
// libtessera_ffmpeg.so, loaded on first need, because its hundred shared libraries would cost every start of
// the tool 25 ms).
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/media.h"

namespace tessera {

/// Owns a file descriptor.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// An opened input and the bytes it starts with.
struct MediaInput {
  UniqueFd fd;
  std::string name;   ///< the path, or "standard input"
  int64_t size = -1;  ///< bytes of a regular file; -1 for a pipe
  std::array<char, 64> head{};
  size_t head_size = 0;  ///< a pipe has given these bytes already; a file starts at 0 again

  bool seekable() const { return size >= 0; }
};

/// "cannot read <name>: <why>".
inline Error read_error(ErrorCode code, const std::string& name, const std::string& why) {
  return Error{code, "cannot read " + name + ": " + why};
}

/// "<name> is damaged: <how>".
inline Error damage(const std::string& name, const std::string& how) {
  return Error{ErrorCode::damaged, name + " is damaged: " + how};
}

/// Sound as the file has it.
class AudioSource {
 public:
  virtual ~AudioSource() = default;
  virtual const AudioInfo& info() const = 0;
  /// Up to out.size() / channels frames; 0 at the end. After an Error the source stays at its end.
  virtual Result<size_t> read(std::span<float> out) = 0;
  virtual const std::vector<std::string>& notes() const = 0;
};

/// Opens and looks at the first bytes; "-" is standard input.
Result<MediaInput> open_input(const std::string& path);

/// Whether libsndfile is the one to try first: a seekable WAV, FLAC, AIFF, AU, CAF, W64 or Ogg Vorbis.
bool suits_sndfile(const MediaInput& input);

/// Does not take the input over: on failure FFmpeg may try.
Result<std::unique_ptr<AudioSource>> open_sndfile(const MediaInput& input);

/// Loads the module and opens through it. `input` is taken over.
Result<std::unique_ptr<AudioSource>> open_ffmpeg(MediaInput input);

/// What the module exports, as C symbols of these names. The version changes with everything above.
inline constexpr int kMediaModuleVersion = 1;
using MediaModuleVersion = int();  // tessera_media_module_version
using MediaModuleOpen = AudioSource*(MediaInput& input,
                                     Error& error);  // tessera_media_module_open, null: error

}  // namespace tessera
