// All channels get equally many frames, so all give equally many samples in each step.
#include "apps/audio_decoder.h"

#include <algorithm>
#include <utility>

namespace tessera::app {
namespace {

std::size_t hold_of(const CodecInfo& info, int channels) {
  return static_cast<std::size_t>(info.samples_per_frame + info.pre_skip) *
         static_cast<std::size_t>(channels);
}

}  // namespace

AudioDecoder::AudioDecoder(const std::shared_ptr<const Codec>& codec, int channels,
                           const StreamOptions& options, AudioWriter& writer)
    : max_frames_(options.max_frames_per_step),
      writer_(writer),
      batch_(codec, channels, options),
      trimmer_(hold_of(codec->info(), channels)),
      inputs_(static_cast<std::size_t>(channels)),
      tokens_(inputs_.size()),
      pcm_(inputs_.size()) {
  for (DecoderInput& input : inputs_) input.stream = batch_.open();
}

Result<void> AudioDecoder::push(std::span<const std::int32_t> tokens, int codebooks) {
  const std::size_t channels = inputs_.size();
  const auto width = static_cast<std::size_t>(codebooks);  // of one channel in one frame
  const std::size_t most = static_cast<std::size_t>(max_frames_) * channels * width;
  for (std::size_t first = 0; first < tokens.size(); first += most) {
    const auto some = tokens.subspan(first, std::min(most, tokens.size() - first));
    for (std::size_t c = 0; c < channels; ++c) {
      tokens_[c].clear();
      for (std::size_t at = c * width; at < some.size(); at += channels * width) {
        const auto from = some.begin() + static_cast<std::ptrdiff_t>(at);
        tokens_[c].insert(tokens_[c].end(), from, from + codebooks);
      }
      inputs_[c].tokens = tokens_[c];
      inputs_[c].codebooks = codebooks;
      inputs_[c].lost = 0;
    }
    if (auto stepped = step(false); !stepped) return stepped;
  }
  return {};
}

Result<void> AudioDecoder::lost(std::int64_t frames) {
  while (frames > 0) {
    const int some = static_cast<int>(std::min<std::int64_t>(frames, max_frames_));
    for (DecoderInput& input : inputs_) {
      input.tokens = {};
      input.lost = some;
    }
    if (auto stepped = step(false); !stepped) return stepped;
    frames -= some;
  }
  return {};
}

Result<std::int64_t> AudioDecoder::finish(std::optional<std::int64_t> total) {
  for (DecoderInput& input : inputs_) {
    input.tokens = {};
    input.lost = 0;
  }
  if (auto stepped = step(true); !stepped) return stepped.error();
  const auto channels = static_cast<std::int64_t>(inputs_.size());
  const std::int64_t length = std::min(total.value_or(samples_), samples_);
  const std::int64_t values =
      trimmer_.finish(length * channels, [this](std::span<const float> rest) { write(rest); });
  if (!written_) return written_.error();
  return values / channels;
}

Result<void> AudioDecoder::step(bool end) {
  for (std::size_t c = 0; c < pcm_.size(); ++c) {
    pcm_[c].clear();
    inputs_[c].end = end;
  }
  auto stepped = batch_.step(inputs_, [this](int stream, std::span<const float> pcm) {
    auto& channel = pcm_[static_cast<std::size_t>(stream)];
    channel.insert(channel.end(), pcm.begin(), pcm.end());
  });
  if (!stepped) return stepped;
  const std::size_t count = pcm_.front().size();
  interleaved_.resize(count * pcm_.size());
  for (std::size_t c = 0; c < pcm_.size(); ++c) {
    for (std::size_t i = 0; i < count; ++i) interleaved_[i * pcm_.size() + c] = pcm_[c][i];
  }
  samples_ += static_cast<std::int64_t>(count);
  trimmer_.push(interleaved_, [this](std::span<const float> values) { write(values); });
  return written_;
}

void AudioDecoder::write(std::span<const float> interleaved) {
  if (written_) written_ = writer_.write(interleaved);
}

}  // namespace tessera::app
