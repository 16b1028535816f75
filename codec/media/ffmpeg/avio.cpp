// Bytes for FFmpeg: a file by read and seek, a pipe by what open_input() looked at and then the rest.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "codec/media/ffmpeg/ffmpeg.h"

namespace tessera {
namespace {

constexpr int kBufferBytes = 32768;

int read_bytes(void* opaque, uint8_t* to, int size) {
  auto& input = *static_cast<MediaInput*>(opaque);
  if (!input.seekable() && input.head_size > 0) {
    const size_t n = std::min(input.head_size, static_cast<size_t>(size));
    std::memcpy(to, input.head.data(), n);
    std::copy(input.head.begin() + static_cast<std::ptrdiff_t>(n), input.head.end(), input.head.begin());
    input.head_size -= n;
    return static_cast<int>(n);
  }
  ssize_t n = 0;
  do {
    n = ::read(input.fd.get(), to, static_cast<size_t>(size));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return AVERROR(errno);
  return n == 0 ? AVERROR_EOF : static_cast<int>(n);
}

int64_t seek_bytes(void* opaque, int64_t offset, int whence) {
  const auto& input = *static_cast<MediaInput*>(opaque);
  if ((whence & AVSEEK_SIZE) != 0) return input.size;
  const int64_t at = lseek(input.fd.get(), offset, whence & ~AVSEEK_FORCE);
  return at < 0 ? AVERROR(errno) : at;
}

}  // namespace

std::string ffmpeg_text(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(code, text.data(), text.size());
  return text.data();
}

FfmpegPtr<AVIOContext> make_avio(MediaInput& input) {
  if (input.seekable()) lseek(input.fd.get(), 0, SEEK_SET);
  auto* buffer = static_cast<unsigned char*>(av_malloc(kBufferBytes));
  if (buffer == nullptr) return nullptr;
  FfmpegPtr<AVIOContext> io(avio_alloc_context(buffer, kBufferBytes, 0, &input, read_bytes, nullptr,
                                               input.seekable() ? seek_bytes : nullptr));
  if (!io) av_free(buffer);
  return io;
}

}  // namespace tessera
