#include "codec/encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codec/stream_slots.h"

namespace tessera {
namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// At the start of an encoder's state; then samples_per_frame waiting samples, then the network's state.
struct alignas(64) Header {
  std::int64_t samples;  // taken so far
  std::int64_t frames;   // given so far
  std::int64_t waiting;  // samples that do not fill a frame yet
};

}  // namespace

struct EncoderBatch::Impl {
  StreamSlots slots;

  Impl(const std::shared_ptr<const Codec>& codec, int max_streams, const StreamOptions& options)
      : slots(codec, StreamKind::encoder, codec->model().encoder.get(), max_streams, options) {
    const int hop = slots.info().samples_per_frame, rows = (slots.max_frames + 1) * hop;
    const int frames = network().max_rows(rows) * max_streams;
    const std::size_t streams = to_size(max_streams);
    slots.allocate(network_offset() + network().state_bytes(),
                   Workspace::padded(streams * sizeof(Cursor)) +
                       Workspace::padded(streams * sizeof(std::byte*)) + 2 * Workspace::padded(streams) +
                       sequences_bytes(max_streams, rows, 1) + network().workspace_bytes(max_streams, rows) +
                       slots.model().quantizer->workspace_bytes(frames) +
                       Workspace::padded(to_size(frames) * to_size(slots.codebooks) * sizeof(std::int32_t)));
  }

  const Layer& network() const { return *slots.model().encoder; }
  Header& header(std::byte* state) const { return *reinterpret_cast<Header*>(state); }
  float* waiting(std::byte* state) const { return reinterpret_cast<float*>(state + sizeof(Header)); }
  std::size_t network_offset() const {
    return sizeof(Header) + Workspace::padded(to_size(slots.info().samples_per_frame) * sizeof(float));
  }
  void reset(std::byte* state) const {
    std::memset(state, 0, network_offset());
    network().init_state(state + network_offset());
  }

  // How far a step has come with one input: the stream's samples are those waiting, then pcm, then zeros.
  struct Cursor {
    const EncoderInput* input;
    std::byte* state;
    std::int64_t pcm;    // samples of the input not yet taken
    std::int64_t zeros;  // to follow it
    bool done;
  };

  Cursor begin(const EncoderInput& input) {
    std::byte* state = slots.state(input.stream).data();
    Header& head = header(state);
    head.samples += static_cast<std::int64_t>(input.pcm.size());
    const bool pad = input.end && slots.model().end == StreamEnd::zero_pad;
    const std::int64_t whole = slots.info().frames_for(head.samples) * slots.info().samples_per_frame;
    return {&input, state, static_cast<std::int64_t>(input.pcm.size()), pad ? whole - head.samples : 0,
            false};
  }

  // The rows of this stream's next run, and whether it ends with them. No rows: nothing (more) to run.
  int plan(const Cursor& cursor, bool& end) const {
    const int hop = slots.info().samples_per_frame;
    const std::int64_t available = header(cursor.state).waiting + cursor.pcm + cursor.zeros;
    const std::int64_t rows = std::min<std::int64_t>(available / hop, slots.max_frames) * hop;
    end = cursor.input->end && slots.model().end == StreamEnd::layers_pad && available - rows < hop;
    return static_cast<int>(end ? available : rows);
  }

  // Moves `rows` samples of the stream to x. Samples that are no numbers count as silence.
  void take(Cursor& cursor, int rows, float* x) const {
    Header& head = header(cursor.state);
    const std::int64_t old = std::min<std::int64_t>(head.waiting, rows),
                       fresh = std::min(cursor.pcm, rows - old);
    std::memcpy(x, waiting(cursor.state), to_size(old) * sizeof(float));
    const auto pcm = cursor.input->pcm.last(to_size(cursor.pcm));
    std::transform(pcm.begin(), pcm.begin() + fresh, x + old,
                   [](float sample) { return std::isfinite(sample) ? sample : 0.0f; });
    std::fill(x + old + fresh, x + rows, 0.0f);
    head.waiting -= old;
    cursor.pcm -= fresh;
    cursor.zeros -= rows - old - fresh;
  }

  // The input is used up: what fills no frame waits, or the stream is over.
  void finish(Cursor& cursor) const {
    cursor.done = true;
    if (cursor.input->end) return reset(cursor.state);
    Header& head = header(cursor.state);
    const auto pcm = cursor.input->pcm.last(to_size(cursor.pcm));
    std::transform(pcm.begin(), pcm.end(), waiting(cursor.state) + head.waiting,
                   [](float sample) { return std::isfinite(sample) ? sample : 0.0f; });
    head.waiting += cursor.pcm;
    // What no longer waits is cleared: equal histories give equal states, however they were split.
    std::fill(waiting(cursor.state) + head.waiting, waiting(cursor.state) + slots.info().samples_per_frame,
              0.0f);
  }

  void step(std::span<const EncoderInput> inputs, FunctionRef<void(int, const Frame&)> sink) {
    Workspace& workspace = *slots.workspace;
    workspace.clear();
    slots.expect_distinct(inputs);
    const auto cursors = workspace.array<Cursor>(Workspace::Side::low, inputs.size());
    std::transform(inputs.begin(), inputs.end(), cursors.begin(),
                   [&](const EncoderInput& input) { return begin(input); });
    while (run(cursors, sink)) {
    }
  }

  // Runs the network once over what the streams have ready; false when there was nothing left.
  bool run(std::span<Cursor> cursors, FunctionRef<void(int, const Frame&)> sink) {
    Workspace& workspace = *slots.workspace;
    const Workspace::Mark mark = workspace.mark();
    const auto lengths = workspace.array<int>(Workspace::Side::low, cursors.size());
    const auto ends = workspace.array<bool>(Workspace::Side::low, cursors.size());
    const auto states = workspace.array<std::byte*>(Workspace::Side::low, cursors.size());
    std::int64_t total = 0;
    bool any = false;
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      ends[i] = false;
      lengths[i] = cursors[i].done ? 0 : plan(cursors[i], ends[i]);
      states[i] = cursors[i].state;
      total += lengths[i];
      any = any || lengths[i] > 0 || ends[i];
      if (!cursors[i].done && lengths[i] == 0 && !ends[i]) finish(cursors[i]);
    }
    if (any) {
      Sequences x{workspace.tensor(Workspace::Side::low, {total, 1}), lengths, ends};
      float* rows = x.rows.f32();
      for (std::size_t i = 0; i < cursors.size(); ++i) {
        if (!cursors[i].done) take(cursors[i], lengths[i], rows);
        rows += lengths[i];
      }
      encode(x, cursors, states, sink);
      for (std::size_t i = 0; i < cursors.size(); ++i) {
        if (ends[i]) finish(cursors[i]);
      }
    }
    workspace.release(Workspace::Side::low, mark);
    workspace.release(Workspace::Side::high, mark);
    return any;
  }

  void encode(const Sequences& x, std::span<Cursor> cursors, std::span<std::byte*> states,
              FunctionRef<void(int, const Frame&)> sink) {
    StepContext context{*slots.workspace, slots.pool};
    const Sequences latents = network().step(x, States(states, network_offset()), context);
    const std::size_t count = to_size(slots.codebooks);
    const auto tokens =
        slots.workspace->array<std::int32_t>(Workspace::Side::low, to_size(latents.total()) * count);
    slots.model().quantizer->encode(latents.rows.f32(), latents.total(), slots.codebooks, tokens.data(),
                                    context);
    const std::int32_t* next = tokens.data();
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      for (int frame = 0; frame < latents.lengths[i]; ++frame, next += count) {
        sink(cursors[i].input->stream, {header(cursors[i].state).frames++, {next, count}});
      }
    }
  }
};

EncoderBatch::EncoderBatch(const std::shared_ptr<const Codec>& codec, int max_streams,
                           const StreamOptions& options)
    : impl_(std::make_unique<Impl>(codec, max_streams, options)) {}
EncoderBatch::EncoderBatch(EncoderBatch&&) noexcept = default;
EncoderBatch& EncoderBatch::operator=(EncoderBatch&&) noexcept = default;
EncoderBatch::~EncoderBatch() = default;

const CodecInfo& EncoderBatch::info() const {
  return impl_->slots.info();
}
int EncoderBatch::codebooks() const {
  return impl_->slots.codebooks;
}

int EncoderBatch::open() {
  const int stream = impl_->slots.take();
  impl_->reset(impl_->slots.state(stream).data());
  return stream;
}

void EncoderBatch::close(int stream) {
  impl_->slots.free(stream);
}
State& EncoderBatch::state(int stream) {
  return impl_->slots.state(stream);
}

void EncoderBatch::step(std::span<const EncoderInput> inputs, FunctionRef<void(int, const Frame&)> sink) {
  impl_->step(inputs, sink);
}

Encoder::Encoder(std::shared_ptr<const Codec> codec, const StreamOptions& options)
    : codec_(std::move(codec)), options_(options), batch_(codec_, 1, options) {
  batch_.open();
}

void Encoder::push(std::span<const float> pcm, FrameSink sink) {
  const EncoderInput input{.stream = 0, .pcm = pcm};
  batch_.step({&input, 1}, [&](int, const Frame& frame) { sink(frame); });
}

void Encoder::flush(FrameSink sink) {
  const EncoderInput input{.stream = 0, .end = true};
  batch_.step({&input, 1}, [&](int, const Frame& frame) { sink(frame); });
}

Encoder Encoder::fork() {
  Encoder copy(codec_, options_);
  copy.state() = state();
  return copy;
}

}  // namespace tessera
