// WAV written by hand: sizes, pipes and RF64 stay under control.
#include "codec/media/sink.h"
#include "codec/media/wav_header.h"

namespace tessera {
namespace {

class WavSink final : public AudioSink {
 public:
  WavSink(AtomicFile file, const WriteOptions& options) : file_(std::move(file)), options_(options) {}

  Result<void> start() {
    return file_.write(file_.seekable() ? wav_header(options_, 0) : wav_stream_header(options_));
  }

  Result<void> write(std::span<const int32_t> samples) override {
    const auto width = static_cast<size_t>(sample_bytes(options_.format));
    bytes_.resize(samples.size() * width);
    auto to = bytes_.begin();
    for (const int32_t sample : samples) {
      for (size_t i = 0; i < width; ++i) {
        *to++ = static_cast<std::byte>(static_cast<uint32_t>(sample) >> (8 * i) & 0xff);
      }
    }
    samples_ += static_cast<int64_t>(samples.size());
    return file_.write(bytes_);
  }

  Result<void> finish() override {
    if (file_.seekable()) {
      const int64_t data = samples_ * sample_bytes(options_.format);
      if (data % 2 != 0) {
        if (auto r = file_.write(std::string_view("\0", 1)); !r) return r;
      }
      if (auto r = file_.write_at(0, wav_header(options_, samples_ / options_.channels)); !r) return r;
    }
    return file_.commit();
  }

 private:
  AtomicFile file_;
  WriteOptions options_;
  int64_t samples_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<std::unique_ptr<AudioSink>> make_wav_sink(AtomicFile file, const WriteOptions& options) {
  auto sink = std::make_unique<WavSink>(std::move(file), options);
  if (auto r = sink->start(); !r) return r.error();
  return std::unique_ptr<AudioSink>(std::move(sink));
}

}  // namespace tessera
