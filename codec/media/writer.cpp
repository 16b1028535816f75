// AudioWriter: decides the file type, turns floats into integers and counts what does not fit.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "codec/media.h"
#include "codec/media/sink.h"
#include "core/error.h"

namespace tessera {
namespace {

constexpr size_t kBlockSamples = 16384;
constexpr int kMaxRateHz = 768000, kMaxWavChannels = 1024, kMaxFlacChannels = 8;

Error usage_error(const std::string& name, const std::string& why) {
  return Error{ErrorCode::usage, "cannot write " + name + ": " + why};
}

Result<AudioFileType> choose_type(const std::string& path, const AtomicFile& file,
                                  const WriteOptions& options) {
  AudioFileType type = options.type;
  if (type == AudioFileType::by_name) {
    std::string extension = std::filesystem::path(path).extension().string();
    for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (extension == ".flac") {
      type = AudioFileType::flac;
    } else if (extension == ".wav" || extension == ".wave" || !file.seekable()) {
      type = AudioFileType::wav;
    } else {
      return usage_error(file.name(), "its name ends in neither .wav nor .flac");
    }
  }
  const bool flac = type == AudioFileType::flac;
  const int most = flac ? kMaxFlacChannels : kMaxWavChannels;
  if (options.channels < 1 || options.channels > most) {
    return usage_error(file.name(), "expected 1 to " + std::to_string(most) + " channels, got " +
                                        std::to_string(options.channels));
  }
  if (options.sample_rate_hz < 1 || options.sample_rate_hz > kMaxRateHz) {
    return usage_error(file.name(), "expected a rate from 1 to " + std::to_string(kMaxRateHz) + " Hz, got " +
                                        std::to_string(options.sample_rate_hz));
  }
  if (flac && options.format == SampleFormat::float32) {
    return usage_error(file.name(), "FLAC has no float samples; choose 16 or 24 bits, or WAV");
  }
  if (flac && !file.seekable())
    return usage_error(file.name(), "FLAC needs a regular file; a pipe takes WAV");
  return type;
}

}  // namespace

struct AudioWriter::State {
  std::unique_ptr<AudioSink> sink;
  WriteOptions options;
  int64_t frames = 0, clipped = 0;
  std::vector<int32_t> block;

  int32_t quantize(float x) {
    if (options.format == SampleFormat::float32) return std::bit_cast<int32_t>(x);
    const float one = options.format == SampleFormat::pcm16 ? 0x1p15f : 0x1p23f;
    // Rounding first: the scaled value is exact, so the comparison sees the integer that would be stored.
    const float scaled = std::nearbyint(x * one);
    if (scaled >= -one && scaled < one) return static_cast<int32_t>(scaled);
    ++clipped;
    if (std::isnan(x)) return 0;
    return static_cast<int32_t>(x > 0 ? one - 1 : -one);
  }
};

Result<AudioWriter> AudioWriter::create(const std::string& path, const WriteOptions& options) {
  auto file = AtomicFile::create(path);
  if (!file) return file.error();
  const auto type = choose_type(path, *file, options);
  if (!type) return type.error();
  auto sink = *type == AudioFileType::flac ? make_flac_sink(*std::move(file), options)
                                           : make_wav_sink(*std::move(file), options);
  if (!sink) return sink.error();
  auto state = std::make_unique<State>();
  state->sink = *std::move(sink);
  state->options = options;
  return AudioWriter(std::move(state));
}

Result<void> AudioWriter::write(std::span<const float> interleaved) {
  State& s = *state_;
  const auto channels = static_cast<size_t>(s.options.channels);
  if (!s.sink) fail("audio_writer", "no write after finish", "one");
  if (interleaved.size() % channels != 0) {
    fail("audio_writer", "whole frames of " + std::to_string(channels) + " samples",
         std::to_string(interleaved.size()) + " samples");
  }
  s.frames += static_cast<int64_t>(interleaved.size() / channels);
  const size_t block = kBlockSamples / channels * channels;  // sinks take whole frames
  while (!interleaved.empty()) {
    const auto part = interleaved.first(std::min(interleaved.size(), block));
    interleaved = interleaved.subspan(part.size());
    s.block.resize(part.size());
    std::transform(part.begin(), part.end(), s.block.begin(), [&s](float x) { return s.quantize(x); });
    if (auto r = s.sink->write(s.block); !r) return r;
  }
  return {};
}

Result<void> AudioWriter::finish() {
  if (!state_->sink) fail("audio_writer", "one finish", "a second");
  auto result = state_->sink->finish();
  state_->sink.reset();
  return result;
}

int64_t AudioWriter::frames() const {
  return state_->frames;
}
int64_t AudioWriter::clipped() const {
  return state_->clipped;
}

AudioWriter::AudioWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
AudioWriter::AudioWriter(AudioWriter&&) noexcept = default;
AudioWriter& AudioWriter::operator=(AudioWriter&&) noexcept = default;
AudioWriter::~AudioWriter() = default;

}  // namespace tessera
