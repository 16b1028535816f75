// Pipes at both ends: sound from standard input in every bit depth, streamed WAV, the module that is not
// there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "support.h"

namespace tessera::test {
namespace {

// Makes the descriptor `target` a pipe that `bytes` come through in pieces; restores it at the end.
class FedInput {
 public:
  explicit FedInput(std::string bytes) : bytes_(std::move(bytes)), saved_(dup(STDIN_FILENO)) {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) < 0) throw std::runtime_error("no pipe");
    close(ends[0]);
    feeder_ = std::thread([this, out = ends[1]] {
      for (size_t at = 0, piece = 1; at < bytes_.size(); at += piece, piece = piece % 5000 + 37) {
        const size_t n = std::min(piece, bytes_.size() - at);
        if (write(out, bytes_.data() + at, n) != static_cast<ssize_t>(n)) break;
      }
      close(out);
    });
  }
  ~FedInput() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
    feeder_.join();
  }

 private:
  std::string bytes_;
  int saved_;
  std::thread feeder_;
};

Sound read_piped(const std::string& path) {
  const FedInput input(read_bytes(path));
  return read_file("-");
}

TEST(Pipe, GivesTheSameSoundAsTheFile) {
  const Scratch scratch;
  auto x = sine(440, 44100, 2 * 40000, 0.999);
  x[5] = -1.0f;
  for (const int format :
       {SF_FORMAT_WAV | SF_FORMAT_PCM_U8, SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_WAV | SF_FORMAT_PCM_24,
        SF_FORMAT_WAVEX | SF_FORMAT_PCM_32, SF_FORMAT_WAV | SF_FORMAT_FLOAT, SF_FORMAT_WAV | SF_FORMAT_DOUBLE,
        SF_FORMAT_FLAC | SF_FORMAT_PCM_16, SF_FORMAT_FLAC | SF_FORMAT_PCM_24,
        SF_FORMAT_AIFF | SF_FORMAT_PCM_24}) {
    write_sndfile(scratch / "x", format, 44100, 2, x);
    const Sound file = read_file(scratch / "x"), piped = read_piped(scratch / "x");
    EXPECT_EQ(piped.samples, file.samples) << std::hex << format;
    EXPECT_EQ(piped.rate, 44100);
    EXPECT_EQ(piped.channels, 2);
    EXPECT_EQ(piped.error, "");
  }
}

TEST(Pipe, AFileOnStandardInputIsAFile) {
  const Scratch scratch;
  write_sndfile(scratch / "x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000, 1, std::vector<float>(100, 0.25f));
  const int saved = dup(STDIN_FILENO);
  const int file = open((scratch / "x.wav").c_str(), O_RDONLY);
  dup2(file, STDIN_FILENO);
  close(file);
  auto reader = AudioReader::open("-");
  dup2(saved, STDIN_FILENO);
  close(saved);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->frames(), 100);
  EXPECT_EQ(reader->input().name, "standard input");
  EXPECT_EQ(read_all(*reader).samples, std::vector<float>(100, 0.25f));
}

TEST(Pipe, ErrorsNameStandardInput) {
  for (const auto& [bytes, part] :
       {std::pair<std::string, std::string>{"", "it is empty"},
        {"no sound here, only words", "starts with \"no sound\""},
        {std::string("\0\0\0\x18", 4) + "ftypM4A and then nothing", "index at the end"}}) {
    const FedInput input(bytes);
    const auto reader = AudioReader::open("-");
    ASSERT_FALSE(reader) << bytes;
    EXPECT_NE(reader.error().message.find("standard input"), std::string::npos);
    EXPECT_NE(reader.error().message.find(part), std::string::npos) << reader.error().message;
  }
}

TEST(Pipe, WritesAStreamThatReadsBack) {
  const Scratch scratch;
  const auto x = sine(440, 24000, 60000);
  for (const SampleFormat format : {SampleFormat::pcm24, SampleFormat::float32}) {
    const std::string fifo = scratch / "fifo.wav", copy = scratch / "copy.wav";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    std::thread drain([&] { write_bytes(copy, read_bytes(fifo)); });
    auto writer = AudioWriter::create(fifo, {.sample_rate_hz = 24000, .channels = 1, .format = format});
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE(writer->write(x) && writer->finish());
    drain.join();
    const std::string bytes = read_bytes(copy);
    EXPECT_EQ(bytes.substr(4, 4), "\xff\xff\xff\xff");
    EXPECT_EQ(bytes.find("JUNK"), std::string::npos);
    const Sound file = read_file(copy), piped = read_piped(copy);
    ASSERT_EQ(file.samples.size(), x.size());
    for (size_t t = 0; t < x.size(); ++t) ASSERT_NEAR(file.samples[t], x[t], 1.0f / (1 << 24));
    EXPECT_EQ(piped.samples, file.samples);
    EXPECT_EQ(file.error + piped.error, "");
    std::filesystem::remove(fifo);
  }
}

TEST(Pipe, StandardOutputTakesAStream) {
  const Scratch scratch;
  const int saved = dup(STDOUT_FILENO);
  const int file = open((scratch / "out.wav").c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDOUT_FILENO);
  close(file);
  auto writer = AudioWriter::create("-", {.sample_rate_hz = 8000, .channels = 1});
  const bool good = writer && writer->write(std::vector<float>(9, 0.5f)) && writer->finish();
  dup2(saved, STDOUT_FILENO);
  close(saved);
  ASSERT_TRUE(good);
  EXPECT_EQ(read_file(scratch / "out.wav").samples, std::vector<float>(9, 0.5f));
}

// This program, copied away from the module, says what is missing and where it looked.
TEST(Module, MissingIsNamed) {
  const char* alone = std::getenv("TESSERA_TEST_ALONE");
  if (alone != nullptr) {
    const auto reader = AudioReader::open(alone);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::unsupported);
    EXPECT_NE(reader.error().message.find("it needs libtessera_ffmpeg.so; looked in "), std::string::npos)
        << reader.error().message;
    return;
  }
  const Scratch scratch;
  const std::string program = scratch / "test_copy";
  std::filesystem::copy_file("/proc/self/exe", program);
  write_bytes(scratch / "x.mp3", "ID3 and so on");
  const auto run = [&] {
    return std::system(("TESSERA_TEST_ALONE=" + scratch / "x.mp3" + " " + program +
                        " --gtest_filter=Module.MissingIsNamed >" + scratch / "log" + " 2>&1")
                           .c_str());
  };
  EXPECT_EQ(run(), 0) << read_bytes(scratch / "log");
  // A library of that name which is none: the child's expectation fails with the loader's reason in its log.
  write_bytes(scratch / "libtessera_ffmpeg.so", "not a library");
  EXPECT_NE(run(), 0);
  EXPECT_NE(read_bytes(scratch / "log").find("loading it failed"), std::string::npos)
      << read_bytes(scratch / "log");
}

}  // namespace
}  // namespace tessera::test
