// Decoding through libsndfile: integers come out as value / 2^(bits - 1), exact up to 24 bits and rounded
// once above. libsndfile reads a WAV or AIFF that was cut off without a word, so its chunks are also walked
// here.
#include <algorithm>
#include <optional>
#include <string_view>

#include "codec/media/sndfile_handle.h"
#include "codec/media/source.h"

namespace tessera {
namespace {

// Sizes from here on stand for "until the end" in files that came through a pipe (FFmpeg, SoX and others
// differ).
constexpr uint64_t kUnknownSize = 0x7fff0000;

uint64_t number(const unsigned char* p, int bytes, bool big_endian) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | p[big_endian ? i : bytes - 1 - i];
  return value;
}

// Bytes of sound that the header of a WAV or AIFF promises and the file does not hold; nothing for other
// formats.
std::optional<std::string> missing_sound(const MediaInput& input) {
  const std::string_view magic(input.head.data(), std::min<size_t>(input.head_size, 4));
  const bool big_endian = magic == "FORM" || magic == "RIFX";
  if (!big_endian && magic != "RIFF" && magic != "RF64") return {};
  const std::string_view wanted = magic == "FORM" ? "SSND" : "data";
  uint64_t size64 = 0;
  for (int64_t at = 12; at <= input.size - 8;) {
    unsigned char chunk[24];
    const ssize_t got = pread(input.fd.get(), chunk, sizeof chunk, at);
    if (got < 8) return {};
    const std::string_view id(reinterpret_cast<const char*>(chunk), 4);
    uint64_t size = number(chunk + 4, 4, big_endian);
    if (id == "ds64" && got >= 24) size64 = number(chunk + 16, 8, false);
    if (id == wanted) {
      if (magic == "RF64" && size == 0xffffffff) {
        size = size64;
      } else if (size >= kUnknownSize) {
        return {};
      }
      const uint64_t held = static_cast<uint64_t>(input.size - at - 8);
      if (size <= held) return {};
      return "its header promises " + std::to_string(size) + " bytes of sound, it holds " +
             std::to_string(held);
    }
    at += 8 + static_cast<int64_t>(size + size % 2);
  }
  return {};
}

std::string format_name(int format) {
  SF_FORMAT_INFO names{};
  names.format = format;
  const bool known = sf_command(nullptr, SFC_GET_FORMAT_INFO, &names, sizeof names) == 0 && names.name;
  return known ? names.name : "unknown";
}

class SndfileSource final : public AudioSource {
 public:
  SndfileSource(SndfilePtr file, const SF_INFO& format, const MediaInput& input)
      : file_(std::move(file)), missing_(missing_sound(input)) {
    info_.name = input.name;
    info_.container = format_name(format.format & SF_FORMAT_TYPEMASK);
    info_.codec = format_name(format.format & SF_FORMAT_SUBMASK);
    info_.sample_rate_hz = format.samplerate;
    info_.channels = format.channels;
    const bool streamed = (format.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC && format.frames == 0;
    if (format.frames >= 0 && format.frames < SF_COUNT_MAX && !streamed) {
      info_.frames = format.frames;
      info_.duration_s = static_cast<double>(format.frames) / format.samplerate;
    }
  }

  const AudioInfo& info() const override { return info_; }
  const std::vector<std::string>& notes() const override { return notes_; }

  Result<size_t> read(std::span<float> out) override {
    const auto room = static_cast<sf_count_t>(out.size() / static_cast<size_t>(info_.channels));
    const sf_count_t n = over_ ? 0 : sf_readf_float(file_.get(), out.data(), room);
    if (n > 0) {
      given_ += n;
      return static_cast<size_t>(n);
    }
    if (over_) return size_t{0};
    over_ = true;
    const std::string read = "; " + std::to_string(given_) + " frames were read";
    if (missing_) return damage(info_.name, *missing_ + read);
    if (sf_error(file_.get()) != SF_ERR_NO_ERROR) {
      return damage(info_.name, std::string("libsndfile says ") + sf_strerror(file_.get()) + read);
    }
    if (info_.frames && given_ < *info_.frames) {
      return damage(info_.name, "its header promises " + std::to_string(*info_.frames) + " frames" + read);
    }
    if (!info_.frames && given_ == 0) return damage(info_.name, "none of its sound decodes");
    return size_t{0};
  }

 private:
  SndfilePtr file_;
  AudioInfo info_;
  std::vector<std::string> notes_;
  std::optional<std::string> missing_;
  int64_t given_ = 0;
  bool over_ = false;
};

}  // namespace

Result<std::unique_ptr<AudioSource>> open_sndfile(const MediaInput& input) {
  SF_INFO format{};
  lseek(input.fd.get(), 0, SEEK_SET);
  // A descriptor of its own (with a shared position): the input stays usable when libsndfile gives up.
  const int fd = dup(input.fd.get());
  SndfilePtr file(sf_open_fd(fd, SFM_READ, &format, SF_TRUE));
  // MPEG layers in a WAV: libsndfile guesses their length and keeps the encoder's padding, FFmpeg does
  // neither.
  const int subtype = format.format & SF_FORMAT_SUBMASK;
  const bool mpeg = subtype >= SF_FORMAT_MPEG_LAYER_I && subtype <= SF_FORMAT_MPEG_LAYER_III;
  if (file && mpeg) {
    lseek(input.fd.get(), 0, SEEK_SET);
    return read_error(ErrorCode::unsupported, input.name, "MPEG sound is left to FFmpeg");
  }
  if (!file) {
    lseek(input.fd.get(), 0, SEEK_SET);
    return read_error(ErrorCode::format, input.name, std::string("libsndfile says ") + sf_strerror(nullptr));
  }
  return std::unique_ptr<AudioSource>(std::make_unique<SndfileSource>(std::move(file), format, input));
}

}  // namespace tessera
