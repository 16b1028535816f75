// Blocks to frames: layers decoded, gaps reported in order of time, streams one after the other.
#include "codec/tsr_reader.h"

#include <algorithm>
#include <utility>

#include "codec/tsr_scanner.h"
#include "core/error.h"

namespace tessera {
namespace {

using tsr::Block;
using Coder = std::unique_ptr<TokenCoder>;

/// The first difference that makes two streams unfit to be one programme, or nothing.
std::string difference(const TsrHeader& first, const TsrHeader& second) {
  const auto differ = [](const char* what, auto a, auto b) {
    return std::string("expected ") + what + " " + std::to_string(a) + " as in the first stream, got " +
           std::to_string(b);
  };
  if (first.codec_id != second.codec_id)
    return "expected codec " + first.codec_id + " as in the first stream, got " + second.codec_id;
  if (first.weights_hash != second.weights_hash)
    return differ("weights", first.weights_hash, second.weights_hash);
  if (first.sample_rate_hz != second.sample_rate_hz)
    return differ("sample rate", first.sample_rate_hz, second.sample_rate_hz);
  if (first.samples_per_frame != second.samples_per_frame)
    return differ("samples per frame", first.samples_per_frame, second.samples_per_frame);
  if (first.channels != second.channels) return differ("channels", first.channels, second.channels);
  if (first.codebook_sizes != second.codebook_sizes)
    return differ("codebooks", first.codebooks(), second.codebooks()) + " of other sizes";
  return {};
}

/// Decodes layers of one segment.
class LayerDecoder {
 public:
  static Result<LayerDecoder> make(const TsrHeader& header) {
    LayerDecoder decoder;
    auto packing = make_token_coder(EntropyCoder::packed);
    auto entropy = make_token_coder(header.entropy_coder);
    if (!entropy) return entropy.error();
    decoder.packing_ = *std::move(packing);
    decoder.entropy_ = *std::move(entropy);
    return decoder;
  }

  /// tokens [frames, channels, codebooks]
  Result<void> decode(const Block& block, const TsrHeader& header, int codebooks,
                      std::vector<std::int32_t>& tokens) {
    const tsr::SegmentBlock& segment = block.segment;
    const auto channels = static_cast<std::size_t>(header.channels),
               stride = static_cast<std::size_t>(codebooks);
    const std::size_t frames = segment.frames;
    std::span<const std::byte> payload = block.bytes.subspan(segment.payload, segment.payload_bytes);
    tokens.resize(frames * channels * stride);
    layer_.resize(frames * channels);
    BitUnpacker unpacker(payload);
    for (std::size_t k = 0; k < stride; ++k) {
      const int size = header.codebook_sizes[k];
      if (segment.coded) {
        const std::size_t coded = segment.layer_bytes[k];
        const std::size_t bytes =
            coded != 0 ? coded : tsr::packed_layer_bytes(header, static_cast<int>(k), segment.frames);
        auto decoded = (coded != 0 ? entropy_ : packing_)->decode(payload.first(bytes), size, layer_);
        if (!decoded) return decoded;
        payload = payload.subspan(bytes);
      } else {
        for (std::int32_t& token : layer_) {
          token = static_cast<std::int32_t>(unpacker.get(token_bits(size)));
          if (token >= size)
            return Error{ErrorCode::format,
                         "expected tokens below " + std::to_string(size) + ", got " + std::to_string(token)};
        }
      }
      for (std::size_t c = 0; c < channels; ++c)  // layer [channels, frames]
        for (std::size_t f = 0; f < frames; ++f)
          tokens[(f * channels + c) * stride + k] = layer_[c * frames + f];
    }
    return {};
  }

 private:
  Coder packing_, entropy_;
  std::vector<std::int32_t> layer_;
};

}  // namespace

struct TsrReader::State {
  tsr::Scanner scanner;
  LayerDecoder layers;
  TsrHeader header{};
  std::uint64_t stream_start = 0;                // offset of the current stream's header
  std::optional<Block> held = {};                // a block that is not used up yet
  std::optional<tsr::Damage> start_damage = {};  // of the header, not reported yet
  std::uint64_t frame = 0;                       // the next frame
  bool ended = false, end_reported = false;
  std::optional<std::uint64_t> total_samples = {};
  std::uint64_t damages = 0;

  /// Takes the metadata that the header announces, if it is whole.
  Result<void> begin_stream(const tsr::HeaderBlock& block) {
    header = block.header;
    frame = 0;
    ended = end_reported = false;
    total_samples.reset();
    held.reset();
    if (!block.metadata_follows) return {};
    auto next = scanner.next();
    if (!next) return next.error();
    held = *std::move(next);
    if (held->kind == Block::Kind::metadata) header.metadata = held->metadata;
    return {};
  }

  std::uint64_t samples(std::uint64_t frames) const {
    const std::uint64_t decoded = frames * static_cast<std::uint64_t>(header.samples_per_frame);
    return decoded - std::min(decoded, static_cast<std::uint64_t>(header.pre_skip));
  }

  TsrSegment lost(std::uint64_t frames, std::string reason) {
    TsrSegment segment;
    segment.first_frame = frame;
    segment.frames = frames;
    segment.lost = true;
    segment.reason = std::move(reason);
    frame += frames;
    ++damages;
    return segment;
  }

  TsrSegment report(const Block& block, const tsr::Damage& damage) {
    std::uint64_t until = frame;
    if (block.kind == Block::Kind::segment) until = block.segment.first_frame;
    if (block.kind == Block::Kind::trailer) until = block.trailer.frames;
    if (block.kind == Block::Kind::end || block.kind == Block::Kind::header) {
      // Nothing behind it says how many frames there were; what is left of the segment may.
      if (damage.cut.first_frame == frame) until = frame + damage.cut.frames;
      end_reported = true;
    }
    return lost(std::max(until, frame) - frame, damage.text());
  }

  TsrSegment missing(std::uint64_t until, const Block& block) {
    return lost(until - frame, "before byte " + std::to_string(block.offset) + ": frames " +
                                   std::to_string(frame) + " to " + std::to_string(until - 1) +
                                   " are not in the file");
  }

  Result<TsrSegment> decode(const Block& block, int max_codebooks) {
    TsrSegment segment;
    segment.first_frame = frame;
    segment.frames = block.segment.frames;
    segment.codebooks = std::clamp(max_codebooks, 0, header.codebooks());
    auto decoded = layers.decode(block, header, segment.codebooks, segment.tokens);
    if (!decoded)
      return lost(
          block.segment.frames,
          tsr::Damage{block.offset, block.offset + block.bytes.size(), decoded.error().message.c_str(), {}}
              .text());
    frame += segment.frames;
    return segment;
  }

  /// The place to start looking for a frame: from the index, or the start of the stream.
  Result<tsr::IndexEntry> place_of(std::uint64_t target) {
    tsr::IndexEntry place{0, stream_start};
    const std::uint64_t size = scanner.source().size.value_or(0);
    constexpr std::uint64_t kTail = 6;  // the length of what is before, the checksum
    if (size < kTail) return place;
    auto tail = scanner.read_at(size - kTail, kTail);
    if (!tail) return tail.error();
    const std::uint64_t length = tsr::Cursor(*tail).number(2) + kTail;
    if (length > size) return place;
    auto bytes = scanner.read_at(size - length, length);
    if (!bytes) return bytes.error();
    tsr::TrailerBlock trailer;
    const tsr::Parsed parsed = tsr::parse_trailer(*bytes, trailer);
    const bool whole = parsed.status == tsr::Parsed::Status::ok && parsed.size == length && trailer.indexed;
    if (!whole || size - length != stream_start + trailer.offset)
      return place;  // or the trailer of a later stream
    for (const tsr::IndexEntry& entry : trailer.index)
      if (entry.frame <= target) place = {entry.frame, stream_start + entry.offset};
    return place;
  }
};

TsrReader::TsrReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TsrReader::TsrReader(TsrReader&&) noexcept = default;
TsrReader& TsrReader::operator=(TsrReader&&) noexcept = default;
TsrReader::~TsrReader() = default;

Result<TsrReader> TsrReader::open(ByteSource source) {
  auto scanner = tsr::Scanner::open(std::move(source));
  if (!scanner) return scanner.error();
  auto layers = LayerDecoder::make(scanner->header().header);
  if (!layers) return layers.error();
  auto state = std::make_unique<State>(State{*std::move(scanner), *std::move(layers)});
  state->start_damage = state->scanner.damage_at_start();
  if (auto begun = state->begin_stream(state->scanner.header()); !begun) return begun.error();
  return TsrReader(std::move(state));
}

const TsrHeader& TsrReader::header() const {
  return state_->header;
}
std::optional<std::uint64_t> TsrReader::total_samples() const {
  return state_->total_samples;
}
std::uint64_t TsrReader::frames() const {
  return state_->frame;
}
std::uint64_t TsrReader::bytes() const {
  return state_->scanner.offset();
}
std::uint64_t TsrReader::damages() const {
  return state_->damages;
}
bool TsrReader::can_seek() const {
  return static_cast<bool>(state_->scanner.source().seek);
}

std::uint64_t TsrReader::best_total_samples() const {
  return state_->total_samples.value_or(state_->samples(state_->frame));
}

Result<std::optional<TsrSegment>> TsrReader::next(int max_codebooks) {
  State& state = *state_;
  if (state.start_damage) {
    const tsr::Damage damage = *std::exchange(state.start_damage, std::nullopt);
    return std::optional(state.lost(0, damage.text()));
  }
  while (!state.ended) {
    if (!state.held) {
      auto next = state.scanner.next();
      if (!next) return next.error();
      state.held = *std::move(next);
    }
    Block& block = *state.held;
    if (block.damage) {
      const tsr::Damage damage = *std::exchange(block.damage, std::nullopt);
      return std::optional(state.report(block, damage));
    }
    switch (block.kind) {
      case Block::Kind::metadata:
        state.held.reset();
        break;
      case Block::Kind::header:
        if (block.header.repeated || block.offset == state.stream_start) {
          state.held.reset();
          break;
        }
        [[fallthrough]];
      case Block::Kind::end:
        if (!std::exchange(state.end_reported, true))
          return std::optional(
              state.lost(0, "byte " + std::to_string(block.offset) +
                                ": the stream ends without a trailer, its exact length is unknown"));
        state.ended = true;
        break;
      case Block::Kind::segment: {
        if (block.segment.first_frame > state.frame)
          return std::optional(state.missing(block.segment.first_frame, block));
        auto segment = state.decode(block, max_codebooks);
        state.held.reset();
        return std::optional(*std::move(segment));
      }
      case Block::Kind::trailer:
        if (block.trailer.frames > state.frame)
          return std::optional(state.missing(block.trailer.frames, block));
        if (block.trailer.frames == state.frame && block.trailer.trim <= state.samples(state.frame)) {
          state.total_samples = state.samples(state.frame) - block.trailer.trim;
        } else if (!std::exchange(state.end_reported, true)) {
          return std::optional(state.lost(0, "byte " + std::to_string(block.offset) +
                                                 ": expected a trailer for " + std::to_string(state.frame) +
                                                 " frames, got one for " +
                                                 std::to_string(block.trailer.frames) + " without " +
                                                 std::to_string(block.trailer.trim) + " samples"));
        }
        state.ended = true;
        state.held.reset();
        break;
    }
  }
  return std::optional<TsrSegment>();
}

Result<bool> TsrReader::next_stream() {
  State& state = *state_;
  if (!state.ended)
    fail("TsrReader::next_stream", "a call after next() has returned nothing", "one before the end");
  if (!state.held) {
    auto next = state.scanner.next();
    if (!next) return next.error();
    state.held = *std::move(next);
  }
  Block& block = *state.held;
  if (block.kind == Block::Kind::end && !block.damage) return false;
  state.start_damage = std::exchange(block.damage, std::nullopt);
  if (block.kind == Block::Kind::end) {  // bytes that are no stream: next() reports them and ends
    state.ended = false;
    state.end_reported = true;
    state.frame = 0;
    state.stream_start = block.offset;
    state.total_samples.reset();
    return true;
  }
  const tsr::HeaderBlock header = block.header;
  if (const std::string reason = difference(state.header, header.header); !reason.empty())
    return Error{ErrorCode::mismatch, "byte " + std::to_string(block.offset) + ": " + reason};
  auto layers = LayerDecoder::make(header.header);
  if (!layers) return layers.error();
  state.layers = *std::move(layers);
  state.stream_start = block.offset;
  if (auto begun = state.begin_stream(header); !begun) return begun.error();
  return true;
}

Result<void> TsrReader::seek(std::uint64_t frame) {
  State& state = *state_;
  if (!can_seek()) fail("TsrReader::seek", "a source that can seek", "one that only reads forward");
  auto place = state.place_of(frame);
  if (!place) return place.error();
  if (auto sought = state.scanner.seek(place->offset, place->frame, {state.header, false, false}); !sought)
    return sought;
  state.frame = place->frame;
  state.ended = state.end_reported = false;
  state.held.reset();
  for (;;) {
    auto next = state.scanner.next();
    if (!next) return next.error();
    const bool before =
        next->kind == Block::Kind::segment && next->segment.first_frame + next->segment.frames <= frame;
    const bool aside =
        next->kind == Block::Kind::metadata ||
        (next->kind == Block::Kind::header && (next->header.repeated || next->offset == state.stream_start));
    if (before) state.frame = next->segment.first_frame + next->segment.frames;
    if (before || aside) continue;
    state.held = *std::move(next);
    return {};
  }
}

}  // namespace tessera
