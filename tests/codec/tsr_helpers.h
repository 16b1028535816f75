// What the tests of the container share: random streams, writing and reading them whole, sources that give
// little at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "codec/tsr_reader.h"
#include "codec/tsr_writer.h"

namespace tessera::tsr_test {

using Bytes = std::vector<std::byte>;
using Frames = std::vector<std::vector<std::int32_t>>;  // each [channels, codebooks]

inline TsrHeader mimi_header() {
  TsrHeader header;
  header.codec_id = "mimi";
  header.weights_hash = 0x0123456789abcdef;
  header.sample_rate_hz = 24000;
  header.samples_per_frame = 1920;
  header.codebook_sizes.assign(8, 2048);
  return header;
}

/// Tokens without any statistics; with `repeats`, about half of them are the token before.
inline Frames random_frames(const TsrHeader& header, std::size_t count, unsigned seed, bool repeats = false) {
  std::mt19937 random(seed);
  const std::size_t codebooks = header.codebook_sizes.size();
  Frames frames(count, std::vector<std::int32_t>(codebooks * static_cast<std::size_t>(header.channels)));
  for (std::size_t f = 0; f < count; ++f)
    for (std::size_t i = 0; i < frames[f].size(); ++i)
      frames[f][i] = repeats && f > 0 && random() % 2 == 0
                         ? frames[f - 1][i]
                         : static_cast<std::int32_t>(
                               random() % static_cast<unsigned>(header.codebook_sizes[i % codebooks]));
  return frames;
}

inline ByteSink memory_sink(Bytes& out) {
  return [&out](std::span<const std::byte> bytes) -> Result<void> {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return {};
  };
}

/// Appends a stream to `out`; `trim` samples short of all that the frames hold.
inline void write_stream(Bytes& out, const TsrHeader& header, const Frames& frames,
                         TsrWriterOptions options = {}, std::uint64_t trim = 0) {
  TsrWriter writer = TsrWriter::open(memory_sink(out), header, options).value();
  for (const auto& frame : frames) writer.push(frame).value();
  const std::uint64_t samples = frames.size() * static_cast<std::uint64_t>(header.samples_per_frame);
  const auto skip = std::min(samples, static_cast<std::uint64_t>(header.pre_skip));
  writer.finish(samples - skip - trim).value();
}

inline Bytes write_file(const TsrHeader& header, const Frames& frames, TsrWriterOptions options = {},
                        std::uint64_t trim = 0) {
  Bytes out;
  write_stream(out, header, frames, options, trim);
  return out;
}

/// A pipe: no seeking, `chunk` bytes at a time (0: 1 to 7, changing).
inline ByteSource pipe_source(std::span<const std::byte> data, std::size_t chunk) {
  ByteSource source = memory_source(data);
  source.read = [read = source.read, chunk, turn = std::size_t{0}](std::span<std::byte> out) mutable {
    const std::size_t most = chunk != 0 ? chunk : 1 + turn++ % 7;
    return read(out.first(std::min(out.size(), most)));
  };
  source.seek = nullptr;
  source.size.reset();
  return source;
}

/// The rest of the current stream: its segments, each checked against `frames` (the first codebooks of each),
/// in order and without holes. Returns them.
inline std::vector<TsrSegment> read_stream(TsrReader& reader, const Frames& frames,
                                           int codebooks = TsrReader::all_codebooks) {
  std::vector<TsrSegment> segments;
  const auto channels = static_cast<std::size_t>(reader.header().channels);
  while (true) {
    const std::uint64_t at = reader.frames();
    std::optional<TsrSegment> segment = reader.next(codebooks).value();
    if (!segment) return segments;
    EXPECT_EQ(segment->first_frame, at);
    EXPECT_EQ(reader.frames(), at + segment->frames);
    EXPECT_EQ(segment->lost, !segment->reason.empty());
    const auto stored = static_cast<std::size_t>(segment->codebooks);
    if (!segment->lost) {
      EXPECT_EQ(segment->tokens.size(), segment->frames * channels * stored);
    }
    for (std::uint64_t f = 0; f < segment->frames && !segment->lost; ++f) {
      const std::vector<std::int32_t>& frame = frames.at(at + f);
      for (std::size_t c = 0; c < channels; ++c)
        EXPECT_TRUE(
            std::equal(segment->tokens.begin() + static_cast<std::ptrdiff_t>((f * channels + c) * stored),
                       segment->tokens.begin() + static_cast<std::ptrdiff_t>((f * channels + c + 1) * stored),
                       frame.begin() + static_cast<std::ptrdiff_t>(c * frame.size() / channels)))
            << "frame " << at + f;
    }
    segments.push_back(*std::move(segment));
  }
}

/// Frames of the segments that are lost, or that are there.
inline std::uint64_t count_frames(const std::vector<TsrSegment>& segments, bool lost) {
  std::uint64_t frames = 0;
  for (const TsrSegment& segment : segments) frames += segment.lost == lost ? segment.frames : 0;
  return frames;
}

}  // namespace tessera::tsr_test
