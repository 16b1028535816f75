// Frames to blocks: layers packed or coded, whichever is smaller.
#include "codec/tsr_writer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "codec/tsr_format.h"
#include "core/error.h"

namespace tessera {

using tsr::Bytes;

struct TsrWriter::State {
  ByteSink sink;
  TsrHeader header;
  TsrWriterOptions options;
  std::unique_ptr<TokenCoder> packing, entropy;
  std::vector<std::int32_t> pending = {};  // [frames of the segment, channels, codebooks]
  std::uint64_t first_frame = 0, frames = 0, header_frame = 0, bytes = 0;
  tsr::IndexBuilder index = {};
  std::optional<Error> error = {};
  bool finished = false;

  Result<void> write(const Bytes& block) {
    if (auto written = sink(block); !written) {
      error = written.error();
      return written;
    }
    bytes += block.size();
    return {};
  }

  /// All channels of one codebook: [channels, frames].
  std::vector<std::int32_t> layer(std::size_t codebook) const {
    const auto channels = static_cast<std::size_t>(header.channels), codebooks = header.codebook_sizes.size();
    const std::size_t count = static_cast<std::size_t>(frames - first_frame);
    std::vector<std::int32_t> tokens;
    tokens.reserve(count * channels);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t f = 0; f < count; ++f)
        tokens.push_back(pending[(f * channels + c) * codebooks + codebook]);
    return tokens;
  }

  /// The layers one after the other as one string of bits.
  Bytes packed_payload() const {
    Bytes payload;
    BitPacker packer(payload);
    for (std::size_t k = 0; k < header.codebook_sizes.size(); ++k)
      for (const std::int32_t token : layer(k))
        packer.put(static_cast<std::uint32_t>(token), token_bits(header.codebook_sizes[k]));
    packer.finish();
    return payload;
  }

  /// The layers' lengths, then the layers, each coded or packed, whichever is smaller.
  Bytes coded_payload() const {
    Bytes lengths, layers, coded, packed;
    for (std::size_t k = 0; k < header.codebook_sizes.size(); ++k) {
      const std::vector<std::int32_t> tokens = layer(k);
      coded.clear();
      packed.clear();
      entropy->encode(tokens, header.codebook_sizes[k], coded);
      packing->encode(tokens, header.codebook_sizes[k], packed);
      const bool smaller = coded.size() < packed.size();
      tsr::put_varint(lengths, smaller ? coded.size() : 0);
      const Bytes& chosen = smaller ? coded : packed;
      layers.insert(layers.end(), chosen.begin(), chosen.end());
    }
    lengths.insert(lengths.end(), layers.begin(), layers.end());
    return lengths;
  }

  Result<void> write_segment() {
    const std::uint64_t count = frames - first_frame;
    if (count == 0) return {};
    const auto samples = [&](std::uint64_t n) {
      return n * static_cast<std::uint64_t>(header.samples_per_frame);
    };
    const auto every = static_cast<std::uint64_t>(options.header_every_seconds);
    if (every > 0 &&
        samples(first_frame - header_frame) >= every * static_cast<std::uint64_t>(header.sample_rate_hz)) {
      if (auto written = write(tsr::header_bytes({header, true, false})); !written) return written;
      header_frame = first_frame;
    }
    Bytes payload = packed_payload();
    bool coded = false;
    if (header.entropy_coder != EntropyCoder::packed) {
      Bytes other = coded_payload();
      coded = other.size() < payload.size();
      if (coded) payload = std::move(other);
    }
    const bool is_short = count < static_cast<std::uint64_t>(header.frames_per_segment);
    Bytes block;
    tsr::put_u8(block, static_cast<std::uint8_t>(tsr::kSegmentTag | (coded ? tsr::kCoded : 0) |
                                                 (is_short ? tsr::kShort : 0)));
    tsr::put_varint(block, first_frame);
    if (is_short) tsr::put_varint(block, count);
    block.insert(block.end(), payload.begin(), payload.end());
    tsr::put_crc(block, 0);
    index.add(first_frame, bytes);
    first_frame = frames;
    pending.clear();
    return write(block);
  }

  /// What keeps a call from doing anything: an earlier error of the sink, or finish().
  Result<void> ready(const char* op) const {
    if (finished) fail(op, "no call after finish()", "one");
    if (error) return *error;
    return {};
  }
};

TsrWriter::TsrWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TsrWriter::TsrWriter(TsrWriter&&) noexcept = default;
TsrWriter& TsrWriter::operator=(TsrWriter&&) noexcept = default;
TsrWriter::~TsrWriter() = default;

Result<TsrWriter> TsrWriter::open(ByteSink sink, TsrHeader header, TsrWriterOptions options) {
  if (auto checked = check_tsr_header(header); !checked) return checked.error();
  if (options.header_every_seconds < 0)
    return Error{ErrorCode::usage, "expected seconds between headers of 0 or more, got " +
                                       std::to_string(options.header_every_seconds)};
  if (header.frames_per_segment == 0) header.frames_per_segment = tsr_frames_per_segment(header);
  auto entropy = make_token_coder(header.entropy_coder);
  if (!entropy) return entropy.error();
  TsrWriter writer(
      std::make_unique<State>(State{std::move(sink), std::move(header), options,
                                    make_token_coder(EntropyCoder::packed).value(), *std::move(entropy)}));
  State& state = *writer.state_;
  const bool metadata = !state.header.metadata.empty();
  Bytes start = tsr::header_bytes({state.header, false, metadata});
  if (metadata) {
    const Bytes block = tsr::metadata_bytes(state.header);
    start.insert(start.end(), block.begin(), block.end());
  }
  if (auto written = state.write(start); !written) return written.error();
  return writer;
}

const TsrHeader& TsrWriter::header() const {
  return state_->header;
}
std::uint64_t TsrWriter::bytes() const {
  return state_->bytes;
}
std::uint64_t TsrWriter::frames() const {
  return state_->frames;
}

Result<void> TsrWriter::push(std::span<const std::int32_t> tokens) {
  State& state = *state_;
  if (auto ready = state.ready("TsrWriter::push"); !ready) return ready;
  const std::vector<int>& sizes = state.header.codebook_sizes;
  const std::size_t expected = static_cast<std::size_t>(state.header.channels) * sizes.size();
  if (tokens.size() != expected)
    fail("TsrWriter::push", std::to_string(expected) + " tokens (channels x codebooks)",
         std::to_string(tokens.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int size = sizes[i % sizes.size()];
    if (tokens[i] < 0 || tokens[i] >= size)
      fail("TsrWriter::push",
           "a token from 0 to " + std::to_string(size - 1) + " in codebook " +
               std::to_string(i % sizes.size()),
           std::to_string(tokens[i]));
  }
  if (state.frames >= tsr::kMaxFrames)
    return Error{ErrorCode::usage, "expected at most 2^32 frames in a stream, got more"};
  state.pending.insert(state.pending.end(), tokens.begin(), tokens.end());
  ++state.frames;
  const bool full =
      state.frames - state.first_frame == static_cast<std::uint64_t>(state.header.frames_per_segment);
  return full ? state.write_segment() : Result<void>();
}

Result<void> TsrWriter::flush() {
  if (auto ready = state_->ready("TsrWriter::flush"); !ready) return ready;
  return state_->write_segment();
}

Result<void> TsrWriter::finish(std::uint64_t total_samples) {
  State& state = *state_;
  if (auto ready = state.ready("TsrWriter::finish"); !ready) return ready;
  std::uint64_t most = state.frames * static_cast<std::uint64_t>(state.header.samples_per_frame);
  most -= std::min(most, static_cast<std::uint64_t>(state.header.pre_skip));
  if (total_samples > most)
    fail("TsrWriter::finish",
         "at most " + std::to_string(most) + " samples from " + std::to_string(state.frames) + " frames",
         std::to_string(total_samples));
  if (auto written = state.write_segment(); !written) return written;
  tsr::TrailerBlock trailer;
  trailer.frames = state.frames;
  trailer.trim = most - total_samples;
  trailer.index = state.index.take();
  trailer.indexed = state.options.index && !trailer.index.empty();
  trailer.offset = state.bytes;
  state.finished = true;
  return state.write(tsr::trailer_bytes(trailer));
}

}  // namespace tessera
