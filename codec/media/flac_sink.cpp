// FLAC through libsndfile, whose bytes pass through the AtomicFile: a full disk is noticed, which
// libsndfile's own writing does not report.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "codec/media/sink.h"
#include "codec/media/sndfile_handle.h"

namespace tessera {
namespace {

// The file as libsndfile sees it.
struct Stream {
  AtomicFile file;
  int64_t at = 0, length = 0;
  std::optional<Error> error;  // the first that occurred

  static Stream& of(void* user) { return *static_cast<Stream*>(user); }
  static sf_count_t size(void* user) { return of(user).length; }
  static sf_count_t tell(void* user) { return of(user).at; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    Stream& s = of(user);
    s.at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s.at : s.length);
    return s.at;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    Stream& s = of(user);
    const ssize_t n = pread(s.file.fd(), to, static_cast<size_t>(count), s.at);
    s.at += std::max<ssize_t>(n, 0);
    return n;
  }
  static sf_count_t write(const void* from, sf_count_t count, void* user) {
    Stream& s = of(user);
    auto r =
        s.file.write_at(s.at, std::span(static_cast<const std::byte*>(from), static_cast<size_t>(count)));
    if (!r) {
      if (!s.error) s.error = r.error();
      return 0;
    }
    s.at += count;
    s.length = std::max(s.length, s.at);
    return count;
  }
};

class FlacSink final : public AudioSink {
 public:
  FlacSink(AtomicFile file, const WriteOptions& options)
      : stream_{.file = std::move(file), .error = {}},
        shift_(options.format == SampleFormat::pcm16 ? 16 : 8) {
    SF_VIRTUAL_IO io{Stream::size, Stream::seek, Stream::read, Stream::write, Stream::tell};
    SF_INFO info{};
    info.samplerate = options.sample_rate_hz;
    info.channels = options.channels;
    info.format = SF_FORMAT_FLAC | (shift_ == 16 ? SF_FORMAT_PCM_16 : SF_FORMAT_PCM_24);
    encoder_.reset(sf_open_virtual(&io, SFM_WRITE, &info, &stream_));
  }

  bool open() const { return encoder_ != nullptr; }
  const std::optional<Error>& error() const { return stream_.error; }

  Result<void> write(std::span<const int32_t> samples) override {
    wide_.resize(samples.size());
    std::transform(samples.begin(), samples.end(), wide_.begin(),
                   [this](int32_t x) { return x * (1 << shift_); });
    const auto count = static_cast<sf_count_t>(wide_.size());
    const bool whole = sf_write_int(encoder_.get(), wide_.data(), count) == count;
    if (stream_.error) return *stream_.error;
    if (!whole) return failure(sf_strerror(encoder_.get()));
    return {};
  }

  Result<void> finish() override {
    sf_command(encoder_.get(), SFC_UPDATE_HEADER_NOW, nullptr, 0);  // a file without sound has one, too
    const int code = sf_close(encoder_.release());
    if (stream_.error) return *stream_.error;
    if (code != 0) return failure(sf_error_number(code));
    return stream_.file.commit();
  }

 private:
  Error failure(const std::string& why) const {
    return Error{ErrorCode::io, "cannot write " + stream_.file.name() + ": libsndfile says " + why};
  }

  Stream stream_;
  SndfilePtr encoder_;  // refers to stream_
  int shift_;           // libsndfile takes integers left-aligned in 32 bits
  std::vector<int> wide_;
};

}  // namespace

Result<std::unique_ptr<AudioSink>> make_flac_sink(AtomicFile file, const WriteOptions& options) {
  const std::string name = file.name();
  auto sink = std::make_unique<FlacSink>(std::move(file), options);
  if (sink->error()) return *sink->error();
  if (!sink->open()) {
    return Error{ErrorCode::usage, "cannot write " + name + ": libsndfile says " + sf_strerror(nullptr) +
                                       " (FLAC, " + std::to_string(options.sample_rate_hz) + " Hz, " +
                                       std::to_string(options.channels) + " channels)"};
  }
  return std::unique_ptr<AudioSink>(std::move(sink));
}

}  // namespace tessera
