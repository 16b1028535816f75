// Tessera's own models: the bytes of the command, the exact length, concealment.
#include "apps/bench/tessera_runner.h"

#include <string>

#include "apps/bench/process.h"
#include "apps/bench/sound_files.h"
#include "apps/commands.h"
#include "codec/media/resampler.h"
#include "codec/tsr_reader.h"
#include "tests/bench_suite/runner_support.h"
#include "tests/codec/small_models.h"

namespace tessera::bench {
namespace {

/// A small model of a family as a file.
class ModelFile {
 public:
  explicit ModelFile(const std::string& family) : path_(folder_.file(family + " small.safetensors")) {
    const std::string weights = test::small_weights(family);
    write_bytes(path_, std::as_bytes(std::span(weights))).value();
  }
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_ = TempFolder::create().value();
  std::string path_;
};

TEST(TesseraRunner, TheFileIsThatOfTheCommand) {
  const auto folder = TempFolder::create().value();
  const auto made = make_tessera_runner({.codebooks = {1, 3}});
  const FileRunner& runner = file_runner(made);
  EXPECT_EQ(runner.name(), "tessera_speech");
  const OperatingPoint point = runner.points()[1];
  EXPECT_EQ(point.name, "3 codebooks");
  const int rate_hz = runner.coded_rate_hz(point, 48000);
  const auto pcm = speech_like(1.3, rate_hz);

  write_bytes(folder.file("in.wav"), wav_bytes(pcm, rate_hz)).value();
  app::Report report("encode", {.quiet = true});
  app::Interrupt interrupt;
  app::Session session{report, interrupt};
  app::EncodeOptions encode;
  encode.input = folder.file("in.wav");
  encode.output = folder.file("out.tsr");
  encode.codebooks = 3;
  app::run(encode, session).value();
  const auto file = runner.encode(point, pcm, rate_hz).value();
  EXPECT_EQ(file.bytes, read_bytes(encode.output).value());

  app::DecodeOptions decode;
  decode.input = encode.output;
  decode.output = folder.file("out.wav");
  decode.bits = SampleFormat::float32;
  app::run(decode, session).value();
  const auto sound = expect_run(runner, point, pcm, rate_hz, 0);
  EXPECT_EQ(sound.pcm, read_sound(decode.output).value().pcm);
}

TEST(TesseraRunner, RunsEveryFamilyAtAnyRate) {
  for (const std::string& family : test::small_model_names()) {
    const ModelFile model(family);
    const auto made = make_tessera_runner({.model = model.path()});
    const FileRunner& runner = file_runner(made);
    EXPECT_EQ(runner.name(), family + "_small");
    const auto codec = test::small_model(family);
    ASSERT_EQ(std::ssize(runner.points()), codec->info().codebooks);
    for (const int rate_hz : {16000, 44100}) {
      const auto pcm = speech_like(0.4, rate_hz);
      std::int64_t before = 0;
      for (const OperatingPoint& point : runner.points()) {
        const auto sound = expect_run(runner, point, pcm, rate_hz, 2);
        EXPECT_GT(sound.file_bytes, before);
        before = sound.file_bytes;
        // The container counts, and the tokens are not larger than packed.
        const auto samples = Resampler::output_frames(std::ssize(pcm), rate_hz, codec->info().sample_rate_hz);
        const std::int64_t frames = codec->info().frames_for(samples);
        EXPECT_EQ(sound.packets, frames);
        const double packed_bits = codec->info().bitrate_bps(std::stoi(point.setting)) /
                                   codec->info().frame_rate_hz() * static_cast<double>(frames);
        EXPECT_LE(static_cast<double>(sound.payload_bytes), packed_bits / 8 + codec->info().codebooks + 1);
        EXPECT_GT(sound.payload_bytes, 0);
        EXPECT_GT(sound.file_bytes, sound.payload_bytes + 30);
      }
    }
  }
}

TEST(TesseraRunner, ConcealsTheFramesOfTheTrace) {
  const ModelFile model("mimi");
  const auto made = make_tessera_runner({.model = model.path(), .codebooks = {2}});
  const FileRunner& runner = file_runner(made);
  ASSERT_TRUE(runner.conceals());
  const OperatingPoint point = runner.points()[0];
  const auto codec = test::small_model("mimi");
  const int rate_hz = codec->info().sample_rate_hz;
  const auto pcm = speech_like(1.5, rate_hz);
  const auto whole = runner.run(point, pcm, rate_hz, {}).value();
  EXPECT_EQ(runner.run(point, pcm, rate_hz, {.rate = 0, .mean_burst = 2, .seed = 8}).value().pcm, whole.pcm);

  const LossOptions loss{.rate = 0.2, .mean_burst = 2, .seed = 4};
  const auto lossy = runner.run(point, pcm, rate_hz, loss).value();
  // The same by hand.
  const auto file = runner.encode(point, pcm, rate_hz).value();
  auto reader = TsrReader::open(memory_source(file.bytes)).value();
  Decoder decoder = codec->decoder({.codebooks = 2});
  auto trace = LossTrace::create(loss).value();
  std::vector<float> expected;
  std::int64_t lost = 0;
  const auto append = [&expected](std::span<const float> part) {
    expected.insert(expected.end(), part.begin(), part.end());
  };
  while (const auto segment = reader.next().value()) {
    for (std::size_t at = 0; at < segment->tokens.size(); at += 2) {
      if (trace.next()) {
        decoder.lost(append);
        ++lost;
      } else {
        decoder.push(std::span(segment->tokens).subspan(at, 2), append).value();
      }
    }
  }
  decoder.flush(append);
  expected.resize(pcm.size());
  EXPECT_GT(lost, 0);
  EXPECT_EQ(lossy.lost, lost);
  EXPECT_EQ(lossy.packets, whole.packets);
  EXPECT_EQ(lossy.pcm, expected);
  EXPECT_NE(lossy.pcm, whole.pcm);
}

TEST(TesseraRunner, RejectsWhatIsNotThere) {
  EXPECT_FALSE(make_tessera_runner({.model = "/nonexistent.safetensors"}));
  const auto made = make_tessera_runner({.codebooks = {1, 99}});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("got 99"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace tessera::bench
