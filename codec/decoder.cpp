#include "codec/decoder.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/stream_slots.h"
#include "core/activation.h"

namespace tessera {
namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// Frames that a decoder's layers may hold back at the start of a stream.
constexpr int kMaxHoldback = 15;
// A lost stretch fades out within this time.
constexpr double kFadeSeconds = 0.12;

// At the start of a decoder's state; then the last frame's latent, then the network's state.
struct alignas(64) Header {
  std::int64_t frames;        // taken so far, concealed ones included
  std::int64_t skipped;       // samples dropped so far, up to pre_skip
  std::int32_t lost;          // frames concealed since the last real one
  std::int32_t waiting;       // frames that the network still holds back
  float gain;                 // at the end of the last frame given out
  float gains[kMaxHoldback];  // of the frames held back, the oldest first
};

}  // namespace

struct DecoderBatch::Impl {
  StreamSlots slots;

  Impl(const std::shared_ptr<const Codec>& codec, int max_streams, const StreamOptions& options)
      : slots(codec, StreamKind::decoder, codec->model().decoder.get(), max_streams, options) {
    if (network().holdback() > kMaxHoldback) {
      fail("decoder", "at most " + std::to_string(kMaxHoldback) + " frames held back",
           std::to_string(network().holdback()));
    }
    const std::size_t streams = to_size(max_streams);
    slots.allocate(network_offset() + network().state_bytes(),
                   Workspace::padded(streams * sizeof(Cursor)) +
                       Workspace::padded(streams * sizeof(std::byte*)) + 2 * Workspace::padded(streams) +
                       sequences_bytes(max_streams, slots.max_frames, quantizer().dimension()) +
                       Workspace::padded(streams * to_size(slots.max_frames + kMaxHoldback) * sizeof(float)) +
                       network().workspace_bytes(max_streams, slots.max_frames) +
                       quantizer().workspace_bytes(slots.max_frames));
  }

  const Layer& network() const { return *slots.model().decoder; }
  const Quantizer& quantizer() const { return *slots.model().quantizer; }
  Header& header(std::byte* state) const { return *reinterpret_cast<Header*>(state); }
  float* last_latent(std::byte* state) const { return reinterpret_cast<float*>(state + sizeof(Header)); }
  std::size_t latent_bytes() const { return to_size(quantizer().dimension()) * sizeof(float); }
  std::size_t network_offset() const { return sizeof(Header) + Workspace::padded(latent_bytes()); }
  void reset(std::byte* state) const {
    std::memset(state, 0, network_offset());
    header(state).gain = 1;
    network().init_state(state + network_offset());
  }

  // How far a step has come with one input: first its lost frames, then its tokens.
  struct Cursor {
    const DecoderInput* input;
    std::byte* state;
    const std::int32_t* tokens;
    std::int64_t lost;    // frames still to conceal
    std::int64_t frames;  // frames still to decode
    int codebooks;
    bool done;
  };

  Result<Cursor> begin(const DecoderInput& input) {
    const int codebooks = input.codebooks == 0 ? slots.codebooks : input.codebooks;
    if (codebooks < 1 || codebooks > slots.info().codebooks || input.lost < 0) {
      fail("decoder", "1 to " + std::to_string(slots.info().codebooks) + " codebooks and lost >= 0",
           std::to_string(codebooks) + " and " + std::to_string(input.lost));
    }
    std::byte* state = slots.state(input.stream).data();
    const std::int64_t first = header(state).frames + input.lost;
    if (input.tokens.size() % to_size(codebooks)) {
      return Error{ErrorCode::format, "expected whole frames of " + std::to_string(codebooks) +
                                          " tokens, got " + std::to_string(input.tokens.size()) + " tokens"};
    }
    for (std::size_t i = 0; i < input.tokens.size(); ++i) {
      const std::size_t codebook = i % to_size(codebooks);
      const int size = slots.info().codebook_sizes[codebook];
      if (input.tokens[i] < 0 || input.tokens[i] >= size) {
        return Error{ErrorCode::format,
                     "frame " + std::to_string(first + static_cast<std::int64_t>(i / to_size(codebooks))) +
                         ", codebook " + std::to_string(codebook) + ": expected a token from 0 to " +
                         std::to_string(size - 1) + ", got " + std::to_string(input.tokens[i])};
      }
    }
    return Cursor{&input,
                  state,
                  input.tokens.data(),
                  input.lost,
                  static_cast<std::int64_t>(input.tokens.size() / to_size(codebooks)),
                  codebooks,
                  false};
  }

  // Writes the latents of the stream's next frames, `count` of them, and the gains that they end with.
  void take(Cursor& cursor, int count, float* latents, float* gains) {
    Header& head = header(cursor.state);
    const std::size_t dimension = to_size(quantizer().dimension());
    const int lost = static_cast<int>(std::min<std::int64_t>(cursor.lost, count)), real = count - lost;
    const double per_frame = slots.info().samples_per_frame / (kFadeSeconds * slots.info().sample_rate_hz);
    const bool nothing_yet = head.frames == head.lost;  // no frame to repeat: silence
    if (head.frames == 0 && lost > 0) head.gain = 0;
    for (int i = 0; i < lost; ++i) {
      std::memcpy(latents + to_size(i) * dimension, last_latent(cursor.state), latent_bytes());
      ++head.lost;
      gains[i] = nothing_yet ? 0.0f : static_cast<float>(std::max(0.0, 1.0 - head.lost * per_frame));
    }
    if (real > 0) {
      StepContext context{*slots.workspace, slots.pool};
      float* decoded = latents + to_size(lost) * dimension;
      quantizer().decode(cursor.tokens, real, cursor.codebooks, decoded, context);
      std::fill_n(gains + lost, real, 1.0f);
      std::memcpy(last_latent(cursor.state), decoded + to_size(real - 1) * dimension, latent_bytes());
      head.lost = 0;
    }
    head.frames += count;
    cursor.tokens += to_size(real) * to_size(cursor.codebooks);
    cursor.lost -= lost;
    cursor.frames -= real;
  }

  Result<void> step(std::span<const DecoderInput> inputs,
                    FunctionRef<void(int, std::span<const float>)> sink) {
    Workspace& workspace = *slots.workspace;
    workspace.clear();
    slots.expect_distinct(inputs);
    const auto cursors = workspace.array<Cursor>(Workspace::Side::low, inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto cursor = begin(inputs[i]);
      if (!cursor) return cursor.error();
      cursors[i] = *cursor;
    }
    while (run(cursors, sink)) {
    }
    return {};
  }

  // Runs the network once over what the streams have ready; false when there was nothing left.
  bool run(std::span<Cursor> cursors, FunctionRef<void(int, std::span<const float>)> sink) {
    Workspace& workspace = *slots.workspace;
    const Workspace::Mark mark = workspace.mark();
    const auto lengths = workspace.array<int>(Workspace::Side::low, cursors.size());
    const auto ends = workspace.array<bool>(Workspace::Side::low, cursors.size());
    const auto states = workspace.array<std::byte*>(Workspace::Side::low, cursors.size());
    const std::size_t stride = to_size(slots.max_frames + kMaxHoldback);
    float* const gains = workspace.array<float>(Workspace::Side::low, cursors.size() * stride).data();
    std::int64_t total = 0;
    bool any = false;
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      const Cursor& cursor = cursors[i];
      const std::int64_t left = cursor.done ? 0 : cursor.lost + cursor.frames;
      lengths[i] = static_cast<int>(std::min<std::int64_t>(left, slots.max_frames));
      ends[i] = !cursor.done && cursor.input->end && left == lengths[i];
      states[i] = cursor.state;
      total += lengths[i];
      any = any || lengths[i] > 0 || ends[i];
    }
    if (any) {
      Sequences x{workspace.tensor(Workspace::Side::low, {total, quantizer().dimension()}), lengths, ends};
      float* rows = x.rows.f32();
      for (std::size_t i = 0; i < cursors.size(); ++i) {
        Header& head = header(cursors[i].state);
        float* own = gains + i * stride;
        std::copy_n(head.gains, head.waiting, own);
        take(cursors[i], lengths[i], rows, own + head.waiting);
        head.waiting += lengths[i];
        rows += lengths[i] * quantizer().dimension();
      }
      StepContext context{workspace, slots.pool};
      Sequences pcm = network().step(x, States(states, network_offset()), context);
      float* samples = pcm.rows.f32();
      for (std::size_t i = 0; i < cursors.size(); ++i) {
        give(cursors[i], gains + i * stride, {samples, to_size(pcm.lengths[i])}, sink);
        samples += pcm.lengths[i];
        if (ends[i]) {
          cursors[i].done = true;
          reset(cursors[i].state);
        }
      }
    }
    workspace.release(Workspace::Side::low, mark);
    workspace.release(Workspace::Side::high, mark);
    return any;
  }

  // Fades and hands over decoded samples; gains has one value per frame that was waiting, these frames first.
  void give(const Cursor& cursor, const float* gains, std::span<float> pcm,
            FunctionRef<void(int, std::span<const float>)> sink) const {
    Header& head = header(cursor.state);
    const std::size_t hop = to_size(slots.info().samples_per_frame);
    const int frames = static_cast<int>(pcm.size() / hop);
    for (int i = 0; i < frames; ++i) {
      if (head.gain != 1.0f || gains[i] != 1.0f)
        ramp(head.gain, gains[i], pcm.data() + to_size(i) * hop, hop, 1);
      head.gain = gains[i];
    }
    head.waiting -= frames;
    std::fill(std::begin(head.gains), std::end(head.gains), 0.0f);
    std::copy_n(gains + frames, head.waiting, head.gains);
    const std::int64_t drop =
        std::min<std::int64_t>(slots.info().pre_skip - head.skipped, static_cast<std::int64_t>(pcm.size()));
    head.skipped += drop;
    pcm = pcm.subspan(to_size(drop));
    if (!pcm.empty()) sink(cursor.input->stream, pcm);
  }
};

DecoderBatch::DecoderBatch(const std::shared_ptr<const Codec>& codec, int max_streams,
                           const StreamOptions& options)
    : impl_(std::make_unique<Impl>(codec, max_streams, options)) {}
DecoderBatch::DecoderBatch(DecoderBatch&&) noexcept = default;
DecoderBatch& DecoderBatch::operator=(DecoderBatch&&) noexcept = default;
DecoderBatch::~DecoderBatch() = default;

const CodecInfo& DecoderBatch::info() const {
  return impl_->slots.info();
}
int DecoderBatch::codebooks() const {
  return impl_->slots.codebooks;
}

int DecoderBatch::open() {
  const int stream = impl_->slots.take();
  impl_->reset(impl_->slots.state(stream).data());
  return stream;
}

void DecoderBatch::close(int stream) {
  impl_->slots.free(stream);
}
State& DecoderBatch::state(int stream) {
  return impl_->slots.state(stream);
}

Result<void> DecoderBatch::step(std::span<const DecoderInput> inputs,
                                FunctionRef<void(int, std::span<const float>)> sink) {
  return impl_->step(inputs, sink);
}

Decoder::Decoder(std::shared_ptr<const Codec> codec, const StreamOptions& options)
    : codec_(std::move(codec)), options_(options), batch_(codec_, 1, options) {
  batch_.open();
}

Result<void> Decoder::push(const Frame& frame, PcmSink sink) {
  const DecoderInput input{.tokens = frame.tokens, .codebooks = static_cast<int>(frame.tokens.size())};
  return batch_.step({&input, 1}, [&](int, std::span<const float> pcm) { sink(pcm); });
}

Result<void> Decoder::push(std::span<const std::int32_t> tokens, PcmSink sink) {
  const DecoderInput input{.tokens = tokens};
  return batch_.step({&input, 1}, [&](int, std::span<const float> pcm) { sink(pcm); });
}

void Decoder::lost(PcmSink sink) {
  const DecoderInput input{.lost = 1};
  (void)batch_.step({&input, 1}, [&](int, std::span<const float> pcm) { sink(pcm); });
}

void Decoder::flush(PcmSink sink) {
  const DecoderInput input{.end = true};
  (void)batch_.step({&input, 1}, [&](int, std::span<const float> pcm) { sink(pcm); });
}

Decoder Decoder::fork() {
  Decoder copy(codec_, options_);
  copy.state() = state();
  return copy;
}

}  // namespace tessera
