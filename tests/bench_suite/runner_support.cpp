#include "tests/bench_suite/runner_support.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "tests/random.h"

namespace tessera::bench {

std::vector<float> speech_like(double seconds, int rate_hz) {
  const auto samples = static_cast<std::size_t>(std::lround(seconds * rate_hz));
  const auto breath = test::random_floats(samples, 3, 0.003f);
  std::vector<float> pcm(samples);
  double phase = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const double t = static_cast<double>(i) / rate_hz;
    const double pitch_hz = 130 + 25 * std::sin(2 * M_PI * 0.6 * t);
    const double vowel = std::sin(2 * M_PI * 1.3 * t);
    phase += 2 * M_PI * pitch_hz / rate_hz;
    double value = 0;
    for (int k = 1; k * pitch_hz < 3600; ++k) {
      const double hz = k * pitch_hz, first = (hz - 550 - 150 * vowel) / 120,
                   second = (hz - 1500 + 400 * vowel) / 200;
      value += (1 / (1 + first * first) + 0.4 / (1 + second * second)) * std::sin(k * phase);
    }
    const double syllable =
        std::max(0.0, std::sin(2 * M_PI * 1.7 * t) + 0.4 * std::sin(2 * M_PI * 0.9 * t + 1));
    pcm[i] = std::round((static_cast<float>(0.12 * syllable * value) + breath[i]) * 32768) / 32768;
  }
  return pcm;
}

const FileRunner& file_runner(const Result<std::unique_ptr<CodecRunner>>& made) {
  if (!made) throw std::runtime_error(made.error().message);
  return dynamic_cast<const FileRunner&>(**made);
}

CodedSound expect_run(const FileRunner& runner, const OperatingPoint& point, std::span<const float> pcm,
                      int rate_hz, std::int64_t slack) {
  SCOPED_TRACE(runner.name() + ", " + point.name);
  auto ran = runner.run(point, pcm, rate_hz, {});
  if (!ran) {
    ADD_FAILURE() << ran.error().message;
    return {};
  }
  const CodedSound& sound = *ran;
  EXPECT_EQ(sound.sample_rate_hz, rate_hz);
  EXPECT_LE(std::llabs(std::ssize(sound.pcm) - std::ssize(pcm)), slack);
  EXPECT_GE(sound.encode_s, 0);
  EXPECT_GE(sound.decode_s, 0);
  EXPECT_EQ(sound.lost, 0);
  EXPECT_LE(sound.payload_bytes, sound.file_bytes);
  EXPECT_FALSE(runner.recipe(point).empty());
  EXPECT_FALSE(runner.version().empty());

  const int coded_hz = runner.coded_rate_hz(point, rate_hz);
  const auto input = resampled(pcm, rate_hz, coded_hz).value();
  const auto file = runner.encode(point, input, coded_hz);
  if (!file) {
    ADD_FAILURE() << file.error().message;
  } else {
    EXPECT_EQ(std::ssize(file->bytes), sound.file_bytes);
    EXPECT_EQ(file->payload_bytes, sound.payload_bytes);
  }
  return *std::move(ran);
}

std::vector<float> envelope(std::span<const float> pcm, int rate_hz) {
  const auto block = static_cast<std::size_t>(rate_hz / 100);
  std::vector<float> energies;
  for (std::size_t at = 0; at + block <= pcm.size(); at += block) {
    const auto part = pcm.subspan(at, block);
    energies.push_back(std::sqrt(std::inner_product(part.begin(), part.end(), part.begin(), 0.0f)));
  }
  const float mean =
      std::accumulate(energies.begin(), energies.end(), 0.0f) / static_cast<float>(energies.size());
  for (float& value : energies) value -= mean;
  return energies;
}

}  // namespace tessera::bench
