// The suite's own zero: nothing may change between the input and what is scored. And the contracts of run()
// itself.
#include "apps/bench/identity_runner.h"

#include <cmath>
#include <limits>

#include "apps/bench/sound_files.h"
#include "tests/bench_suite/runner_support.h"

namespace tessera::bench {
namespace {

class IdentityRunnerTest : public testing::Test {
 protected:
  const Result<std::unique_ptr<CodecRunner>> made_ = make_identity_runner();
  const FileRunner& runner_ = file_runner(made_);
  const OperatingPoint point_ = runner_.points().front();
};

TEST_F(IdentityRunnerTest, ReturnsItsInputToTheBit) {
  auto pcm = speech_like(0.5, 16000);
  pcm[0] = -1.0f;
  pcm[1] = 32767.0f / 32768;
  for (const int rate_hz : {8000, 16000, 44100}) {
    const auto sound = expect_run(runner_, point_, pcm, rate_hz, 0);
    EXPECT_EQ(sound.pcm, pcm);
    EXPECT_EQ(sound.payload_bytes, 2 * std::ssize(pcm));
  }
}

TEST_F(IdentityRunnerTest, RoundsAndLimitsToSixteenBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> pcm{2.0f, -2.0f, nan, 0.4f / 32768, 0.6f / 32768};
  const auto sound = runner_.run(point_, pcm, 16000, {}).value();
  EXPECT_EQ(sound.pcm, (std::vector<float>{32767.0f / 32768, -1.0f, 0.0f, 0.0f, 1.0f / 32768}));
}

TEST_F(IdentityRunnerTest, TheFileIsASoundFile) {
  const auto pcm = speech_like(0.2, 16000);
  const auto file = runner_.encode(point_, pcm, 16000).value();
  const std::string path = testing::TempDir() + "tessera_identity_runner_test.wav";
  write_bytes(path, file.bytes).value();
  const auto sound = read_sound(path).value();
  EXPECT_EQ(sound.pcm, pcm);
  EXPECT_EQ(sound.sample_rate_hz, 16000);
  std::remove(path.c_str());
}

TEST_F(IdentityRunnerTest, RejectsWhatItCannotRun) {
  const auto empty = runner_.run(point_, {}, 16000, {});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "identity: expected a recording with samples, got an empty one");
  const auto lossy = runner_.run(point_, speech_like(0.1, 16000), 16000, {.rate = 0.1});
  ASSERT_FALSE(lossy);
  EXPECT_EQ(lossy.error().code, ErrorCode::unsupported);
  EXPECT_FALSE(runner_.run(point_, speech_like(0.1, 16000), 16000, {.rate = 2}));
}

TEST(FileRunner, TakesTheNearestRateAtOrAbove) {
  constexpr int kRates[] = {8000, 16000, 48000};
  EXPECT_EQ(nearest_rate(kRates, 8000), 8000);
  EXPECT_EQ(nearest_rate(kRates, 8001), 16000);
  EXPECT_EQ(nearest_rate(kRates, 44100), 48000);
  EXPECT_EQ(nearest_rate(kRates, 96000), 48000);
}

}  // namespace
}  // namespace tessera::bench
