// All channels get equally many samples, so all have the same frames ready after each step.
#include "apps/audio_encoder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/progress.h"
#include "codec/encoder.h"

namespace tessera::app {
namespace {

class ChannelEncoder {
 public:
  ChannelEncoder(std::shared_ptr<const Codec> codec, int channels, const StreamOptions& options)
      : batch_(std::move(codec), channels, options),
        inputs_(static_cast<std::size_t>(channels)),
        pcm_(inputs_.size()),
        tokens_(inputs_.size()),
        frame_(inputs_.size() * codebooks()) {
    for (EncoderInput& input : inputs_) input.stream = batch_.open();
  }

  // `interleaved` holds whole frames of samples; hands over the frames of tokens that are complete.
  Result<void> push(std::span<const float> interleaved, bool end, TokenSink sink) {
    const std::size_t channels = inputs_.size();
    for (std::size_t c = 0; c < channels; ++c) {
      pcm_[c].clear();
      for (std::size_t i = c; i < interleaved.size(); i += channels) pcm_[c].push_back(interleaved[i]);
      tokens_[c].clear();
      inputs_[c].pcm = pcm_[c];
      inputs_[c].end = end;
    }
    batch_.step(inputs_, [this](int stream, const Frame& frame) {
      auto& row = tokens_[static_cast<std::size_t>(stream)];
      row.insert(row.end(), frame.tokens.begin(), frame.tokens.end());
    });
    for (std::size_t at = 0; at < tokens_.front().size(); at += codebooks()) {
      for (std::size_t c = 0; c < channels; ++c) {
        const auto from = tokens_[c].begin() + static_cast<std::ptrdiff_t>(at);
        std::copy_n(from, codebooks(), frame_.begin() + static_cast<std::ptrdiff_t>(c * codebooks()));
      }
      if (auto taken = sink(frame_); !taken) return taken;
      ++frames_;
    }
    return {};
  }

  std::int64_t frames() const { return frames_; }

 private:
  std::size_t codebooks() const { return static_cast<std::size_t>(batch_.codebooks()); }

  EncoderBatch batch_;
  std::vector<EncoderInput> inputs_;               // [channels]
  std::vector<std::vector<float>> pcm_;            // [channels][samples]
  std::vector<std::vector<std::int32_t>> tokens_;  // [channels][frames * codebooks]
  std::vector<std::int32_t> frame_;                // [channels, codebooks]
  std::int64_t frames_ = 0;
};

}  // namespace

Result<AudioReader> open_audio(const std::string& path, const CodecInfo& info, ChannelMode mono) {
  return AudioReader::open(path, {.sample_rate_hz = info.sample_rate_hz, .channels = mono});
}

Result<EncodedAudio> encode_audio(AudioReader& reader, std::shared_ptr<const Codec> codec,
                                  const StreamOptions& options, Report& report, TokenSink sink) {
  const CodecInfo& info = codec->info();
  const auto channels = static_cast<std::size_t>(reader.channels());
  if (channels > 1) {
    report.note("coding " + std::to_string(channels) + " channels as " + std::to_string(channels) +
                " streams (--mono codes one)");
  }
  std::size_t noted = report.notes(reader.notes(), 0);
  std::optional<double> total_s = reader.input().duration_s;
  if (reader.frames()) total_s = static_cast<double>(*reader.frames()) / info.sample_rate_hz;

  EncodedAudio done;
  Progress progress("encoding", report.progress());
  ChannelEncoder encoder(std::move(codec), reader.channels(), options);
  std::vector<float> block(channels *
                           static_cast<std::size_t>(options.max_frames_per_step * info.samples_per_frame));
  for (bool end = false; !end;) {
    const auto read = reader.read(block);
    if (!read && read.error().code != ErrorCode::damaged) return read.error();
    if (!read) {
      progress.clear();
      report.warning(read.error().message);
      done.damaged = true;
      continue;
    }
    end = *read == 0;
    if (auto pushed = encoder.push(std::span(block).first(*read * channels), end, sink); !pushed)
      return pushed.error();
    done.samples += static_cast<std::int64_t>(*read);
    progress.update(done.seconds(info), total_s);
  }
  done.frames = encoder.frames();
  done.wall_s = progress.elapsed_s();
  progress.clear();
  report.notes(reader.notes(), noted);
  return done;
}

}  // namespace tessera::app
