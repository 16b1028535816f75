// What damage costs: every byte of a file changed, removed or doubled, the file cut everywhere, headers and
// trailers lost; and forged files, whose checksums are right.
#include "codec/tsr_format.h"
#include "core/error.h"
#include "tests/codec/tsr_helpers.h"

namespace tessera {
namespace {

using namespace tsr_test;

constexpr std::uint64_t kSegmentFrames = 5;

TsrHeader small_header() {
  TsrHeader header = mimi_header();
  header.codebook_sizes = {2048, 1000, 4};
  header.channels = 2;
  header.frames_per_segment = kSegmentFrames;
  header.metadata = {{"source_name", "a.wav"}};
  return header;
}

/// A file with every kind of block: metadata, packed and coded segments, repetitions of the header, an index.
struct Example {
  TsrHeader header = small_header();
  Frames frames = random_frames(header, 167, 1);
  Bytes file;
  Example() {
    for (std::size_t f = 40; f < 80; ++f) frames[f] = frames[39];
    file = write_file(header, frames, {.header_every_seconds = 4}, 7);
  }
};

TEST(TsrDamage, AnyOneByteCostsAtMostOneSegment) {
  const Example example;
  const std::uint64_t samples = 167 * 1920 - 7;
  std::size_t unharmed = 0, lengths_lost = 0;
  for (std::size_t position = 0; position < example.file.size(); ++position) {
    for (const unsigned flip : {0x01u, 0x80u, 0x10u, 0x55u, 0xffu}) {
      Bytes file = example.file;
      file[position] ^= static_cast<std::byte>(flip);
      auto reader = TsrReader::open(position % 2 == 0 ? memory_source(file) : pipe_source(file, 64));
      ASSERT_TRUE(reader) << position << ": " << reader.error().message;
      const auto segments = read_stream(*reader, example.frames);
      const std::uint64_t lost = count_frames(segments, true);
      ASSERT_LE(lost, kSegmentFrames) << "byte " << position;
      ASSERT_EQ(lost + count_frames(segments, false), 167u);
      ASSERT_GE(reader->damages(), 1u) << "byte " << position << " goes unreported";
      ASSERT_FALSE(reader->next_stream().value());
      if (reader->total_samples()) {
        ASSERT_EQ(reader->total_samples(), samples);
      }
      unharmed += lost == 0;
      lengths_lost += !reader->total_samples();
    }
  }
  // Headers (repaired or repeated), metadata and the trailer cost no frames, only the trailer costs the
  // length.
  EXPECT_GT(unharmed, 5 * 34u * 4);
  EXPECT_LT(lengths_lost, 5 * 60u);
}

TEST(TsrDamage, ReportsWhereAndWhen) {
  const TsrHeader header = mimi_header();
  const Frames frames = random_frames(header, 140, 2);
  Bytes file = write_file(header, frames);
  const std::size_t second_segment = 34 + 6 + 484;
  file[second_segment + 100] ^= std::byte{4};
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  const auto segments = read_stream(reader, frames);
  ASSERT_EQ(segments.size(), 4u);
  EXPECT_TRUE(segments[1].lost);
  EXPECT_EQ(segments[1].first_frame, 44u);
  EXPECT_EQ(segments[1].frames, 44u);
  EXPECT_EQ(segments[1].reason, "bytes 524 to 1013: the segment's checksum does not match");
}

TEST(TsrDamage, ACutSegmentStillTellsItsLength) {
  const TsrHeader header = mimi_header();
  const Frames frames = random_frames(header, 100, 8);
  const Bytes file = write_file(header, frames);
  TsrReader reader = TsrReader::open(memory_source(std::span(file).first(34 + 490 + 100))).value();
  const auto segments = read_stream(reader, frames);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_TRUE(segments[1].lost);
  EXPECT_EQ(segments[1].frames, 44u);
  EXPECT_EQ(segments[1].reason, "bytes 524 to 623: the file ends within a block");
}

TEST(TsrDamage, EveryByteOfTheHeaderIsRepaired) {
  std::mt19937 random(3);
  TsrHeader header = mimi_header();
  header.codebook_sizes.clear();
  for (int k = 0; k < 55; ++k)
    header.codebook_sizes.push_back(30000 + k);  // nearly as long as a header may be
  const Frames frames = random_frames(header, 3, 3);
  const Bytes whole = write_file(header, frames);
  const std::size_t size = 9u + std::to_integer<std::size_t>(whole[4]);
  EXPECT_GT(size, 250u);
  for (std::size_t position = 0; position < size; ++position) {
    Bytes file = whole;
    file[position] ^= static_cast<std::byte>(1 + random() % 255);
    auto reader = TsrReader::open(pipe_source(file, 50));
    ASSERT_TRUE(reader) << position;
    EXPECT_EQ(reader->header().codebook_sizes, header.codebook_sizes);
    const auto segments = read_stream(*reader, frames);
    EXPECT_EQ(segments[0].reason,
              "byte " + std::to_string(position) + ": the header was damaged here; repaired");
    EXPECT_EQ(count_frames(segments, false), 3u);
  }
}

TEST(TsrDamage, CutAnywhereKeepsWhatIsWhole) {
  const Example example;
  for (std::size_t length = 0; length < example.file.size(); ++length) {
    const std::span<const std::byte> file = std::span(example.file).first(length);
    auto reader = TsrReader::open(length % 2 == 0 ? memory_source(file) : pipe_source(file, 0));
    const std::size_t header = 9u + std::to_integer<std::size_t>(example.file[4]);
    ASSERT_EQ(static_cast<bool>(reader), length >= header) << length;
    if (!reader) continue;
    const auto segments = read_stream(*reader, example.frames);
    ASSERT_LE(count_frames(segments, true), kSegmentFrames) << length;
    const std::uint64_t whole = count_frames(segments, false);
    ASSERT_GE(whole * 100 / 167 + 12, length * 100 / example.file.size()) << length;
    ASSERT_FALSE(reader->total_samples());
    ASSERT_EQ(reader->best_total_samples(), reader->frames() * 1920);
    ASSERT_TRUE(!segments.empty() && segments.back().lost)
        << "a missing trailer goes unreported at " << length;
  }
}

TEST(TsrDamage, BytesRemovedOrDoubledCostOneSegment) {
  const Example example;
  for (std::size_t position = 60; position < example.file.size(); position += 3) {
    for (const bool doubled : {false, true}) {
      Bytes file = example.file;
      const auto at = file.begin() + static_cast<std::ptrdiff_t>(position);
      if (doubled)
        file.insert(at, *at);
      else
        file.erase(at);
      TsrReader reader = TsrReader::open(memory_source(file)).value();
      const auto segments = read_stream(reader, example.frames);
      ASSERT_LE(count_frames(segments, true), kSegmentFrames) << position;
      ASSERT_EQ(reader.frames(), 167u);
    }
  }
}

TEST(TsrDamage, ManyBytesCostTheSegmentsTheyLieIn) {
  const Example example;
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    Bytes file = example.file;
    const std::size_t begin = 60 + random() % (file.size() - 60), count = 1 + random() % 200;
    std::size_t changed = 0;
    for (std::size_t i = begin; i < std::min(begin + count, file.size()); ++i, ++changed)
      file[i] = static_cast<std::byte>(round % 3 == 0 ? 0xa0 + random() % 4 : random());
    TsrReader reader = TsrReader::open(memory_source(file)).value();
    const auto segments = read_stream(reader, example.frames);
    ASSERT_LE(count_frames(segments, true), kSegmentFrames * (2 + changed / 20));
  }
}

TEST(TsrDamage, ALostHeaderIsTakenFromItsRepetition) {
  const Example example;
  Bytes file = example.file;
  std::fill_n(file.begin(), 30, std::byte{0});
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  EXPECT_EQ(count_frames(read_stream(reader, example.frames), false), 167u) << "it goes back to the start";

  TsrReader pipe = TsrReader::open(pipe_source(file, 100)).value();
  const auto segments = read_stream(pipe, example.frames);
  EXPECT_EQ(segments[0].reason.substr(0, 8), "bytes 0 ");
  EXPECT_EQ(segments[1].reason.substr(0, 7), "before ");
  EXPECT_EQ(count_frames(segments, true), 50u) << "four seconds until the repetition";
  EXPECT_EQ(pipe.total_samples(), 167u * 1920 - 7);

  // The same for a listener who joins late.
  TsrReader late = TsrReader::open(pipe_source(std::span(file).subspan(file.size() / 2), 1)).value();
  EXPECT_GT(count_frames(read_stream(late, example.frames), false), 30u);
  EXPECT_EQ(late.frames(), 167u);
}

TEST(TsrDamage, AppendedStreamsSurviveDamageBetweenThem) {
  const TsrHeader header = small_header();
  const Frames first = random_frames(header, 21, 5), second = random_frames(header, 13, 6);
  const Bytes one = write_file(header, first), two = write_file(header, second);
  for (std::size_t position = one.size() - 7; position < one.size() + 60; ++position) {
    for (const std::size_t count : {1, 50}) {  // one byte, or trailer and header gone
      Bytes file = one;
      file.insert(file.end(), two.begin(), two.end());
      for (std::size_t i = position; i < position + count; ++i) file[i] ^= std::byte{0x5a};
      TsrReader reader = TsrReader::open(memory_source(file)).value();
      ASSERT_EQ(count_frames(read_stream(reader, first), false), 21u);
      ASSERT_TRUE(reader.next_stream().value());
      const std::uint64_t whole = count_frames(read_stream(reader, second), false);
      ASSERT_GE(whole + kSegmentFrames * count, 13u) << position;
      ASSERT_GE(reader.damages(), 1u);
      ASSERT_FALSE(reader.next_stream().value());
    }
  }
  Bytes file = one;
  file.insert(file.end(), 100, std::byte{0xa1});
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  read_stream(reader, first);
  ASSERT_TRUE(reader.next_stream().value());
  EXPECT_EQ(read_stream(reader, {}).at(0).reason.substr(0, 6), "bytes ")
      << "bytes behind the last stream are reported";
  EXPECT_FALSE(reader.next_stream().value());
}

TEST(TsrDamage, SeeksInDamagedFiles) {
  const Example example;
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Bytes file = example.file;
    file[random() % file.size()] ^= static_cast<std::byte>(1 + random() % 255);
    TsrReader reader = TsrReader::open(memory_source(file)).value();
    const std::uint64_t target = random() % 180;
    ASSERT_TRUE(reader.seek(target));
    if (target < 167) {
      ASSERT_LE(reader.frames(), target);
    }
    ASSERT_LE(count_frames(read_stream(reader, example.frames), true), kSegmentFrames);
    ASSERT_EQ(reader.frames(), 167u);
  }
}

TEST(TsrDamage, DropCodebooksLeavesDamageOut) {
  const Example example;
  for (std::size_t position = 0; position < example.file.size(); position += 5) {
    Bytes file = example.file, cut;
    file[position] ^= std::byte{0x55};
    const TsrDropReport report = drop_codebooks(memory_source(file), memory_sink(cut), 2).value();
    ASSERT_EQ(report.damages, 1u);
    TsrReader reader = TsrReader::open(memory_source(cut)).value();
    ASSERT_LE(count_frames(read_stream(reader, example.frames), true), kSegmentFrames);
  }
}

TEST(TsrDamage, OtherFilesAreRefused) {
  const auto refusal = [](std::string_view text) {
    const auto reader = TsrReader::open(memory_source(std::as_bytes(std::span(text))));
    return reader ? std::string("opened") : reader.error().message;
  };
  EXPECT_EQ(refusal(""), "expected a .tsr file, got an empty one");
  EXPECT_EQ(refusal("RIFF....WAVEfmt "), "expected a .tsr file, which begins with \"TSR\", got \"RIFF\"");
  EXPECT_EQ(refusal("TSR\1"), "expected a .tsr header, got a damaged one at byte 0 and no repetition of it");

  Bytes next = tsr::header_bytes({mimi_header(), false, false});
  next.resize(next.size() - 4);
  next[3] = std::byte{2};
  tsr::put_crc(next, 0);
  EXPECT_EQ(TsrReader::open(memory_source(next)).error().message,
            "expected version 1 of the .tsr format with an audio track, got another version of the format");
  TsrHeader header = mimi_header();
  header.frames_per_segment = 44;
  header.entropy_coder = static_cast<EntropyCoder>(9);
  const Bytes model = tsr::header_bytes({header, false, false});
  EXPECT_EQ(TsrReader::open(memory_source(model)).error().code, ErrorCode::unsupported);
}

/// Forged: `body` with its checksum behind a header.
std::vector<TsrSegment> read_forged(const TsrHeader& header, Bytes block) {
  Bytes file = tsr::header_bytes({header, false, false});
  tsr::put_crc(block, 0);
  file.insert(file.end(), block.begin(), block.end());
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  std::vector<TsrSegment> segments;
  while (auto segment = reader.next().value()) segments.push_back(*std::move(segment));
  return segments;
}

TEST(TsrDamage, ForgedBlocksAreRefused) {
  TsrHeader header = mimi_header();
  header.codebook_sizes = {2000};
  header.frames_per_segment = 8;
  Bytes block{std::byte{0xa0}, std::byte{0}};
  block.insert(block.end(), 11, std::byte{0xff});  // tokens of 2047
  EXPECT_EQ(read_forged(header, block).at(0).reason, "bytes 34 to 50: expected tokens below 2000, got 2047");

  block = {std::byte{0xa0}};
  tsr::put_varint(block, std::uint64_t{1} << 33);  // a time beyond all streams
  block.insert(block.end(), 11, std::byte{0});
  EXPECT_TRUE(read_forged(header, block).at(0).lost);

  block = {std::byte{0xe0}};
  tsr::put_varint(block, std::uint64_t{1} << 32);  // four thousand million frames, none of them there
  tsr::put_varint(block, 0);
  const auto segments = read_forged(header, block);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_TRUE(segments[0].lost && segments[0].tokens.empty());
  EXPECT_EQ(segments[0].frames, std::uint64_t{1} << 32);

  header.frames_per_segment = 1 << 20;  // one byte that claims a million tokens
  block = {std::byte{0xa2}, std::byte{0}, std::byte{1}, std::byte{0}};
  EXPECT_NE(read_forged(header, block).at(0).reason.find("at least one byte for every 128 tokens"),
            std::string::npos);
}

// Without a bound on its search, a reader would check 130 kB for each of 300000 false starts.
TEST(TsrDamage, FalseStartsCannotHoldAReaderUp) {
  TsrHeader header = mimi_header();
  header.channels = 255;
  header.codebook_sizes.assign(255, 65536);
  header.frames_per_segment = 16;
  Bytes file = tsr::header_bytes({header, false, false});
  for (int i = 0; i < 300000; ++i)
    for (const int byte : {0xa1, 0x00, 0x01}) file.push_back(static_cast<std::byte>(byte));
  TsrReader reader = TsrReader::open(memory_source(file)).value();
  EXPECT_TRUE(reader.next().value()->lost);
  EXPECT_FALSE(reader.next().value());
}

}  // namespace
}  // namespace tessera
