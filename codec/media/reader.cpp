// AudioReader: choose who decodes, take the channels asked for, resample, and hand out in pieces of any size.
#include <algorithm>
#include <limits>
#include <string>

#include "codec/media.h"
#include "codec/media/resampler.h"
#include "codec/media/source.h"
#include "core/error.h"

namespace tessera {
namespace {

constexpr size_t kBlockSamples = 16384;

Result<std::unique_ptr<AudioSource>> open_source(const std::string& path) {
  auto input = open_input(path);
  if (!input) return input.error();
  if (!suits_sndfile(*input)) return open_ffmpeg(*std::move(input));
  auto source = open_sndfile(*input);
  if (source) return source;
  auto other = open_ffmpeg(*std::move(input));  // a codec in WAV, a FLAC with odd metadata: FFmpeg knows more
  if (other) return other;
  // Who knew the container has the better word, unless FFmpeg could not be asked or lacks only the decoder.
  return other.error().code == ErrorCode::unsupported ? other.error() : source.error();
}

// Interleaved frames of `channels` to one channel.
void to_mono(std::span<const float> frames, size_t channels, ChannelMode mode, std::vector<float>& out) {
  out.resize(frames.size() / channels);
  const size_t pick = mode == ChannelMode::right && channels > 1 ? 1 : 0;
  for (size_t t = 0; t < out.size(); ++t) {
    const auto frame = frames.subspan(t * channels, channels);
    double sum = frame[pick];
    if (mode == ChannelMode::mix) {
      for (size_t c = 1; c < channels; ++c) sum += frame[c];
      sum /= static_cast<double>(channels);
    }
    out[t] = static_cast<float>(sum);
  }
}

std::string channel_note(ChannelMode mode, int channels) {
  const std::string of = " of " + std::to_string(channels) + " channels";
  switch (mode) {
    case ChannelMode::keep:
      return "";
    case ChannelMode::mix:
      return channels == 1 ? "" : "mixed " + std::to_string(channels) + " channels to 1 (plain mean)";
    case ChannelMode::left:
      return channels == 1 ? "" : "took the first" + of;
    case ChannelMode::right:
      return channels == 1 ? "took the only channel: there is no right one" : "took the second" + of;
  }
  fail("audio_reader", "a ChannelMode", std::to_string(static_cast<int>(mode)));
}

}  // namespace

struct AudioReader::State {
  std::unique_ptr<AudioSource> source;
  ReadOptions options;
  int channels = 0, sample_rate_hz = 0;
  std::optional<Resampler> resampler;
  std::vector<std::string> notes;
  size_t source_notes = 0;  // of the source's notes, those that are among `notes`

  std::vector<float> block, mono, ready;
  size_t ready_at = 0;           // samples of `ready` handed out
  bool over = false;             // the source has ended
  std::optional<Error> trouble;  // given when everything before it is handed out

  size_t take(std::span<float> out) {
    const size_t n = std::min(out.size(), ready.size() - ready_at);
    std::copy_n(ready.begin() + static_cast<std::ptrdiff_t>(ready_at), n, out.begin());
    ready_at += n;
    return n;
  }

  void end(std::optional<Error> error) {
    over = true;
    trouble = std::move(error);
    if (resampler) {
      if (auto flushed = resampler->flush(ready); !flushed && !trouble) trouble = flushed.error();
      if (resampler->clipped() > 0) {
        notes.push_back("limited " + std::to_string(resampler->clipped()) +
                        " samples beyond 16 times full scale while resampling");
      }
    }
    collect_notes();
  }

  void collect_notes() {
    for (; source_notes < source->notes().size(); ++source_notes)
      notes.push_back(source->notes()[source_notes]);
  }

  // Decodes one block into `ready`.
  void refill() {
    ready.clear();
    ready_at = 0;
    const auto in_channels = static_cast<size_t>(source->info().channels);
    block.resize(std::max<size_t>(1, kBlockSamples / in_channels) * in_channels);
    const auto n = source->read(block);
    if (!n || *n == 0) return end(n ? std::nullopt : std::optional(n.error()));
    std::span<const float> frames(block.data(), *n * in_channels);
    if (options.channels != ChannelMode::keep) {
      to_mono(frames, in_channels, options.channels, mono);
      frames = mono;
    }
    if (!resampler) {
      ready.assign(frames.begin(), frames.end());
    } else if (auto pushed = resampler->push(frames, ready); !pushed) {
      end(pushed.error());
    }
  }
};

Result<AudioReader> AudioReader::open(const std::string& path, const ReadOptions& options) {
  auto source = open_source(path);
  if (!source) return source.error();
  auto state = std::make_unique<State>();
  state->source = *std::move(source);
  state->options = options;
  const AudioInfo& info = state->source->info();
  state->channels = options.channels == ChannelMode::keep ? info.channels : 1;
  state->sample_rate_hz = options.sample_rate_hz == 0 ? info.sample_rate_hz : options.sample_rate_hz;
  state->collect_notes();
  if (auto note = channel_note(options.channels, info.channels); !note.empty()) {
    state->notes.push_back(std::move(note));
  }
  if (state->sample_rate_hz != info.sample_rate_hz) {
    auto resampler = Resampler::create(info.sample_rate_hz, state->sample_rate_hz, state->channels);
    if (!resampler) return read_error(resampler.error().code, info.name, resampler.error().message);
    state->resampler = *std::move(resampler);
    state->notes.push_back("resampled " + std::to_string(info.sample_rate_hz) + " Hz -> " +
                           std::to_string(state->sample_rate_hz) + " Hz");
  }
  return AudioReader(std::move(state));
}

Result<size_t> AudioReader::read(std::span<float> out) {
  State& s = *state_;
  const auto channels = static_cast<size_t>(s.channels);
  if (out.size() < channels) {
    fail("audio_reader", "room for a frame of " + std::to_string(channels) + " samples",
         std::to_string(out.size()) + " samples");
  }
  out = out.first(out.size() / channels * channels);
  size_t done = s.take(out);
  while (done == 0 && !s.over) {
    s.refill();
    done = s.take(out);
  }
  if (done == 0 && s.trouble) {
    const Error error = *std::move(s.trouble);
    s.trouble.reset();
    return error;
  }
  return done / channels;
}

const AudioInfo& AudioReader::input() const {
  return state_->source->info();
}
int AudioReader::sample_rate_hz() const {
  return state_->sample_rate_hz;
}
int AudioReader::channels() const {
  return state_->channels;
}
const std::vector<std::string>& AudioReader::notes() const {
  return state_->notes;
}

std::optional<int64_t> AudioReader::frames() const {
  const auto in = input().frames;
  if (!in || !state_->resampler) return in;
  return Resampler::output_frames(*in, input().sample_rate_hz, state_->sample_rate_hz);
}

AudioReader::AudioReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
AudioReader::AudioReader(AudioReader&&) noexcept = default;
AudioReader& AudioReader::operator=(AudioReader&&) noexcept = default;
AudioReader::~AudioReader() = default;

}  // namespace tessera
