// The container: round trips of all shapes, its overhead, cutting codebooks off, appending, seeking, files,
// and what is refused.
#include <filesystem>

#include "core/error.h"
#include "tests/codec/tsr_helpers.h"

namespace tessera {
namespace {

using namespace tsr_test;

std::size_t packed_bytes(const TsrHeader& header, std::size_t frames) {
  return (frames * static_cast<std::size_t>(header.bits_per_frame()) + 7) / 8;
}

TsrHeader random_header(std::mt19937& random) {
  TsrHeader header = mimi_header();
  header.sample_rate_hz = 1 + static_cast<int>(random() % 48000);
  header.samples_per_frame = 1 + static_cast<int>(random() % 2000);
  header.pre_skip = static_cast<int>(random() % 3000);
  header.channels = 1 + static_cast<int>(random() % 4);
  header.codebook_sizes.resize(1 + random() % 9);
  for (int& size : header.codebook_sizes)
    size = 2 + static_cast<int>(random() % (random() % 2 == 0 ? 20 : 65535));
  header.frames_per_segment = static_cast<int>(random() % 40);
  if (random() % 2 == 0) header.entropy_coder = EntropyCoder::packed;
  if (random() % 2 == 0) header.metadata = {{"source_name", "Grüße.wav"}, {"empty", ""}};
  return header;
}

TEST(Tsr, RoundTripsStreamsOfAllShapes) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 150; ++round) {
    const TsrHeader header = random_header(random);
    const Frames frames =
        random_frames(header, round < 10 ? round / 2 : random() % 200, round, round % 2 == 0);
    const Bytes file = write_file(header, frames, {.header_every_seconds = static_cast<int>(random() % 3)});
    TsrReader reader =
        TsrReader::open(round % 3 == 0 ? memory_source(file) : pipe_source(file, round % 3 - 1)).value();
    EXPECT_EQ(reader.header().codebook_sizes, header.codebook_sizes);
    EXPECT_EQ(reader.header().pre_skip, header.pre_skip);
    EXPECT_EQ(reader.header().metadata, header.metadata);
    const auto segments = read_stream(reader, frames);
    EXPECT_EQ(count_frames(segments, false), frames.size());
    EXPECT_EQ(reader.damages(), 0u);
    EXPECT_EQ(reader.bytes(), file.size());
    const std::int64_t samples =
        static_cast<std::int64_t>(frames.size()) * header.samples_per_frame - header.pre_skip;
    EXPECT_EQ(reader.total_samples(), static_cast<std::uint64_t>(std::max<std::int64_t>(0, samples)));
    EXPECT_FALSE(reader.next_stream().value());
  }
}

TEST(Tsr, KeepsEveryFieldOfTheHeader) {
  TsrHeader header = mimi_header();
  header.codec_id = "my-codec_2.0";
  header.weights_hash = ~std::uint64_t{0};
  header.sample_rate_hz = 2147483647;
  header.samples_per_frame = 1 << 20;
  header.pre_skip = 1 << 20;
  header.channels = 255;
  header.codebook_sizes = {2, 2, 65536, 1000, 1000, 1000, 3};
  header.frames_per_segment = 3;
  const Bytes file = write_file(header, {});
  const TsrReader reader = TsrReader::open(memory_source(file)).value();
  EXPECT_EQ(reader.header().codec_id, header.codec_id);
  EXPECT_EQ(reader.header().weights_hash, header.weights_hash);
  EXPECT_EQ(reader.header().sample_rate_hz, header.sample_rate_hz);
  EXPECT_EQ(reader.header().samples_per_frame, header.samples_per_frame);
  EXPECT_EQ(reader.header().pre_skip, header.pre_skip);
  EXPECT_EQ(reader.header().channels, header.channels);
  EXPECT_EQ(reader.header().codebook_sizes, header.codebook_sizes);
  EXPECT_EQ(reader.header().frames_per_segment, 3);
  EXPECT_EQ(reader.header().entropy_coder, EntropyCoder::adaptive);
  EXPECT_TRUE(reader.can_seek());
}

TEST(Tsr, KeepsTheExactLength) {
  TsrHeader header = mimi_header();
  header.pre_skip = 480;
  const Bytes file = write_file(header, random_frames(header, 30, 2), {}, 1919);
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  EXPECT_FALSE(reader.total_samples());
  while (reader.next(0).value()) {
  }
  EXPECT_EQ(reader.total_samples(), 30u * 1920 - 480 - 1919);
  EXPECT_EQ(reader.best_total_samples(), 30u * 1920 - 480 - 1919);
}

// Tokens without statistics are the worst case. 1.1 kbps from 10 s on; other rates for the record of the
// writer's choice.
TEST(Tsr, OverheadIsAtMostFivePercent) {
  TsrHeader header = mimi_header();
  const Frames frames = random_frames(header, 3000, 3);
  for (std::size_t count = 125; count <= 3000; count += count < 420 ? 1 : 97) {
    const Bytes file =
        write_file(header, Frames(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(count)));
    const std::size_t packed = packed_bytes(header, count);
    EXPECT_LE(file.size() * 100, packed * 105) << count << " frames: " << file.size() << " for " << packed;
  }
  EXPECT_EQ(tsr_frames_per_segment(header), 44);
  header.codebook_sizes.resize(1);  // 137 bps: four seconds
  EXPECT_EQ(tsr_frames_per_segment(header), 50);
  header.codebook_sizes.assign(32, 2048);  // 4.4 kbps: one second
  EXPECT_EQ(tsr_frames_per_segment(header), 13);
}

TEST(Tsr, AdaptiveCoderPaysOnRepetitionAndNeverCosts) {
  TsrHeader adaptive = mimi_header(), packed = adaptive;
  packed.entropy_coder = EntropyCoder::packed;
  const Frames silence(250, std::vector<std::int32_t>(8, 1234));
  EXPECT_LT(write_file(adaptive, silence).size() * 5, write_file(packed, silence).size());
  const Frames repeats = random_frames(adaptive, 250, 4, true);
  EXPECT_LT(write_file(adaptive, repeats).size() * 10, write_file(packed, repeats).size() * 8);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Frames noise = random_frames(adaptive, 250, seed);
    EXPECT_LE(write_file(adaptive, noise).size(), write_file(packed, noise).size());
  }
}

TEST(Tsr, CountsBytes) {
  EXPECT_DOUBLE_EQ(true_kbps(1375, 240000, 24000), 1.1);
  EXPECT_EQ(true_kbps(34, 0, 24000), 0);
}

TEST(Tsr, ReadsTheFirstCodebooksOnly) {
  TsrHeader header = mimi_header();
  header.channels = 2;
  const Frames frames = random_frames(header, 100, 5, true);
  const Bytes file = write_file(header, frames);
  for (const int codebooks : {0, 1, 7, 8, 99}) {
    TsrReader reader = TsrReader::open(memory_source(file)).value();
    const auto segments = read_stream(reader, frames, codebooks);
    EXPECT_EQ(count_frames(segments, false), 100u);
    EXPECT_EQ(segments[0].codebooks, std::min(codebooks, 8));
  }
}

TEST(Tsr, DroppingCodebooksGivesTheFileOfFewer) {
  std::mt19937 random(6);
  for (unsigned round = 0; round < 40; ++round) {
    TsrHeader header = random_header(random);
    if (header.frames_per_segment == 0) header.frames_per_segment = 7;
    const Frames frames = random_frames(header, round * 8, round, round % 2 == 0);
    const Bytes file = write_file(header, frames, {.header_every_seconds = 1});
    const int kept = 1 + static_cast<int>(random() % static_cast<unsigned>(header.codebooks()));
    Bytes cut;
    const TsrDropReport report = drop_codebooks(pipe_source(file, 0), memory_sink(cut), kept).value();
    EXPECT_EQ(report.bytes_in, file.size());
    EXPECT_EQ(report.bytes_out, cut.size());
    EXPECT_EQ(report.damages, 0u);
    TsrReader reader = TsrReader::open(memory_source(cut)).value();
    EXPECT_EQ(reader.header().codebooks(), kept);
    EXPECT_EQ(reader.header().metadata, header.metadata);
    EXPECT_EQ(count_frames(read_stream(reader, frames), false), frames.size());
    EXPECT_TRUE(reader.total_samples());
    EXPECT_EQ(reader.damages(), 0u);
    if (header.entropy_coder ==
        EntropyCoder::packed) {  // no choice of coder: bit for bit what the writer makes
      header.codebook_sizes.resize(static_cast<std::size_t>(kept));
      Frames first = frames;
      for (std::size_t f = 0; f < frames.size(); ++f) {
        first[f].clear();
        const std::size_t all = frames[f].size() / static_cast<std::size_t>(header.channels);
        for (std::size_t i = 0; i < frames[f].size(); ++i)
          if (i % all < static_cast<std::size_t>(kept)) first[f].push_back(frames[f][i]);
      }
      EXPECT_EQ(cut, write_file(header, first, {.header_every_seconds = 1}));
    }
    if (frames.size() > 10) {
      ASSERT_TRUE(reader.seek(frames.size() / 2));
      EXPECT_LE(reader.frames(), frames.size() / 2);
      read_stream(reader, frames);
      EXPECT_EQ(reader.frames(), frames.size());
    }
  }
  Bytes none;
  const Bytes file = write_file(mimi_header(), {});
  EXPECT_EQ(drop_codebooks(memory_source(file), memory_sink(none), 9).error().message,
            "expected to keep 1 to 8 codebooks, got 9");
}

TEST(Tsr, AppendedStreamsFollowEachOther) {
  TsrHeader header = mimi_header();
  const Frames first = random_frames(header, 60, 7), second = random_frames(header, 5, 8, true);
  Bytes file = write_file(header, first, {}, 100);
  header.entropy_coder = EntropyCoder::packed;
  header.metadata = {{"source_name", "second"}};
  write_stream(file, header, second, {}, 200);
  write_stream(file, header, {});
  for (const bool seekable : {true, false}) {
    TsrReader reader = TsrReader::open(seekable ? memory_source(file) : pipe_source(file, 3)).value();
    EXPECT_THROW((void)reader.next_stream(), UsageError);
    read_stream(reader, first);
    EXPECT_EQ(reader.total_samples(), 60u * 1920 - 100);
    ASSERT_TRUE(reader.next_stream().value());
    EXPECT_EQ(reader.header().metadata, header.metadata);
    read_stream(reader, second);
    EXPECT_EQ(reader.total_samples(), 5u * 1920 - 200);
    if (seekable) {
      ASSERT_TRUE(reader.seek(0));
      EXPECT_EQ(count_frames(read_stream(reader, second), false), 5u);
    }
    ASSERT_TRUE(reader.next_stream().value());
    EXPECT_TRUE(read_stream(reader, {}).empty());
    EXPECT_FALSE(reader.next_stream().value());
    EXPECT_EQ(reader.damages(), 0u);
  }
  header.channels = 2;
  write_stream(file, header, {});
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  for (int stream = 0; stream < 3; ++stream) {
    while (reader.next().value()) {
    }
    if (stream < 2) {
      ASSERT_TRUE(reader.next_stream().value());
    }
  }
  EXPECT_EQ(reader.next_stream().error().code, ErrorCode::mismatch);
}

TEST(Tsr, FilesAreReadAndAppendedTo) {
  const std::string path = testing::TempDir() + "tsr_test_append.tsr";
  std::filesystem::remove(path);
  const TsrHeader header = mimi_header();
  const Frames frames = random_frames(header, 50, 16);
  for (int stream = 0; stream < 2; ++stream) {
    TsrWriter writer = TsrWriter::open(append_sink(path).value(), header).value();
    for (const auto& frame : frames) writer.push(frame).value();
    writer.finish(0).value();
  }
  ByteSource source = file_source(path).value();
  EXPECT_EQ(source.size, std::filesystem::file_size(path));
  TsrReader reader = TsrReader::open(std::move(source)).value();
  EXPECT_EQ(count_frames(read_stream(reader, frames), false), 50u);
  ASSERT_TRUE(reader.next_stream().value());
  EXPECT_EQ(count_frames(read_stream(reader, frames), false), 50u);
  ASSERT_TRUE(reader.seek(45));
  EXPECT_EQ(count_frames(read_stream(reader, frames), false), 6u);
  std::filesystem::remove(path);

  EXPECT_EQ(file_source(path).error().message, "cannot open " + path + ": No such file or directory");
  EXPECT_EQ(file_source("/").error().message, "cannot read /: it is a directory");
  EXPECT_EQ(append_sink("/").error().code, ErrorCode::io);
}

TEST(Tsr, SeeksWithAndWithoutIndex) {
  TsrHeader header = mimi_header();
  header.frames_per_segment = 2;
  const Frames frames = random_frames(header, 9001, 9);  // 4501 segments: more than the index may name
  for (const bool index : {true, false}) {
    const Bytes file = write_file(header, frames, {.index = index});
    std::uint64_t read = 0;
    ByteSource source = memory_source(file);
    source.read = [&read, inner = source.read](std::span<std::byte> out) {
      auto got = inner(out.first(std::min<std::size_t>(out.size(), 512)));
      read += *got;
      return got;
    };
    TsrReader reader = TsrReader::open(std::move(source)).value();
    for (const std::uint64_t target : {0, 1, 5000, 8999, 9000, 17, 9001, 20000}) {
      read = 0;
      ASSERT_TRUE(reader.seek(target));
      if (index) {
        EXPECT_LT(read, 8000u) << "the trailer and a few segments";
      }
      EXPECT_EQ(reader.frames(), target < 9001 ? target / 2 * 2 : 9001);
      const auto segment = reader.next().value();
      ASSERT_EQ(segment.has_value(), target < 9001);
      if (!segment) continue;
      const std::vector<std::int32_t>& first = frames[segment->first_frame];
      EXPECT_TRUE(std::equal(first.begin(), first.end(), segment->tokens.begin()));
    }
  }
  TsrReader pipe = TsrReader::open(pipe_source(write_file(header, {}), 9)).value();
  EXPECT_FALSE(pipe.can_seek());
  EXPECT_THROW((void)pipe.seek(0), UsageError);
}

TEST(Tsr, SeeksInAStreamThatAnotherFollows) {
  TsrHeader header = mimi_header();
  const Frames first = random_frames(header, 88, 14), second = random_frames(header, 9, 15);
  Bytes file = write_file(header, first);
  file.resize(file.size() - 7);  // without its trailer, so that the reader runs into the next header
  header.frames_per_segment = 3;
  write_stream(file, header, second);
  file[10] ^= std::byte{1};  // nor may it count on the first header being whole when it goes back
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(count_frames(read_stream(reader, first), false), 88u);
    ASSERT_TRUE(reader.seek(50));
    EXPECT_EQ(count_frames(read_stream(reader, first), false), 44u);
    ASSERT_TRUE(reader.seek(0));
  }
  read_stream(reader, first);
  ASSERT_TRUE(reader.next_stream().value());
  EXPECT_EQ(count_frames(read_stream(reader, second), false), 9u);
}

TEST(Tsr, FlushHandsOverWhatWasPushed) {
  Bytes file;
  const TsrHeader header = mimi_header();
  const Frames frames = random_frames(header, 10, 10);
  TsrWriter writer = TsrWriter::open(memory_sink(file), header).value();
  for (const auto& frame : frames) {
    writer.push(frame).value();
    writer.flush().value();
    EXPECT_EQ(writer.bytes(), file.size());
  }
  writer.flush().value();
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  for (int f = 0; f < 10; ++f) EXPECT_EQ(reader.next().value()->frames, 1u);
}

TEST(Tsr, RefusesWhatCannotBeWritten) {
  Bytes out;
  const auto refuse = [&](auto change, const std::string& expected) {
    TsrHeader header = mimi_header();
    change(header);
    const auto writer = TsrWriter::open(memory_sink(out), header);
    ASSERT_FALSE(writer);
    EXPECT_NE(writer.error().message.find(expected), std::string::npos) << writer.error().message;
  };
  refuse([](TsrHeader& h) { h.codec_id = "Mimi"; }, "expected a codec id");
  refuse([](TsrHeader& h) { h.sample_rate_hz = 0; }, "got 0");
  refuse([](TsrHeader& h) { h.samples_per_frame = 1 << 21; }, "got 2097152");
  refuse([](TsrHeader& h) { h.channels = 256; }, "channels from 1 to 255, got 256");
  refuse([](TsrHeader& h) { h.codebook_sizes.clear(); }, "codebooks from 1 to 255, got 0");
  refuse([](TsrHeader& h) { h.codebook_sizes[3] = 1; }, "codebook sizes from 2 to 65536, got 1");
  refuse([](TsrHeader& h) { h.frames_per_segment = 131073; }, "from 1 to 131072, got 131073");
  refuse([](TsrHeader& h) { h.metadata = {{"k", "\xc0\x80"}}; }, "UTF-8");
  refuse(
      [](TsrHeader& h) {
        h.metadata = {{"k", std::string(4096, 'a')}};
      },
      "4096 bytes in all, got 1 of 4097");
  refuse(
      [](TsrHeader& h) {
        for (int k = 0; k < 99; ++k) h.codebook_sizes.push_back(40000 + k);
      },
      "264 bytes");
  refuse([](TsrHeader& h) { h.entropy_coder = static_cast<EntropyCoder>(5); }, "entropy coder");

  TsrWriter writer = TsrWriter::open(memory_sink(out), mimi_header()).value();
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>(7)), UsageError);
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>(8, 2048)), UsageError);
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>(8, -1)), UsageError);
  EXPECT_THROW((void)writer.finish(1), UsageError);
  writer.finish(0).value();
  EXPECT_THROW((void)writer.push(std::vector<std::int32_t>(8)), UsageError);
}

TEST(Tsr, PassesTheErrorsOfSinkAndSourceOn) {
  int room = 2;
  const ByteSink sink = [&](std::span<const std::byte>) -> Result<void> {
    if (room-- > 0) return {};
    return Error{ErrorCode::io, "disk full"};
  };
  TsrWriter writer = TsrWriter::open(sink, mimi_header()).value();
  int written = 0;
  while (writer.push(std::vector<std::int32_t>(8))) ++written;
  EXPECT_EQ(written, 2 * 44 - 1);
  room = 9;
  EXPECT_EQ(writer.flush().error().message, "disk full") << "an error stays";

  const Bytes file = write_file(mimi_header(), random_frames(mimi_header(), 100, 11));
  ByteSource source = memory_source(file);
  source.read = [inner = source.read, calls = 0](std::span<std::byte> out) mutable -> Result<std::size_t> {
    if (++calls == 4) return Error{ErrorCode::io, "cable pulled"};
    return inner(out.first(300));
  };
  TsrReader reader = TsrReader::open(std::move(source)).value();
  while (true) {
    const auto segment = reader.next();
    if (segment) continue;
    EXPECT_EQ(segment.error().message, "cable pulled");
    break;
  }
}

}  // namespace
}  // namespace tessera
