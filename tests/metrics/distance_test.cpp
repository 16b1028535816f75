// STOI, waveform and spectral metrics: against other programs, and what each sees and does not see.
#include <algorithm>
#include <cmath>
#include <limits>

#include "metrics/resample.h"
#include "metrics/signal.h"
#include "metrics/spectral_distance.h"
#include "metrics/stoi.h"
#include "metrics/waveform.h"
#include "tests/metrics/pairs.h"

namespace tessera::metrics {
namespace {

using test::bursts;
using test::scaled;

constexpr int kRate = 16000;
using Metric = Result<double> (*)(std::span<const float>, std::span<const float>, int);
constexpr Metric kAll[] = {stoi, extended_stoi, si_sdr, snr, log_spectral_distance, mel_distance};

double score(Metric metric, const std::vector<float>& reference, const std::vector<float>& degraded) {
  return metric(reference, degraded, kRate).value();
}

TEST(Distances, AgreeWithOtherPrograms) {
  TESSERA_NEED_SHARED("data/speech16");
  TESSERA_NEED_SHARED("metrics/visqol");
  for (const test::ScoredPair& pair : test::kPairs) {
    const auto [reference, degraded, rate] = test::sounds_of(pair);
    EXPECT_NEAR(stoi(reference, degraded, rate).value(), pair.stoi, 1e-5) << pair.first;
    EXPECT_NEAR(extended_stoi(reference, degraded, rate).value(), pair.estoi, 1e-5) << pair.first;
    EXPECT_NEAR(si_sdr(reference, degraded, rate).value(), pair.si_sdr, 1e-5) << pair.first;
    EXPECT_NEAR(snr(reference, degraded, rate).value(), pair.snr, 1e-5) << pair.first;
    EXPECT_NEAR(log_spectral_distance(reference, degraded, rate).value(), pair.lsd, 1e-5) << pair.first;
    EXPECT_NEAR(mel_distance(reference, degraded, rate).value(), pair.mel_distance, 1e-5) << pair.first;
  }
}

TEST(Distances, EqualSoundsScoreBest) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  EXPECT_NEAR(score(stoi, sound, sound), 1, 1e-12);
  EXPECT_NEAR(score(extended_stoi, sound, sound), 1, 1e-12);
  EXPECT_EQ(score(si_sdr, sound, sound), kMostDb);
  EXPECT_EQ(score(snr, sound, sound), kMostDb);
  EXPECT_EQ(score(log_spectral_distance, sound, sound), 0);
  EXPECT_EQ(score(mel_distance, sound, sound), 0);
}

TEST(Distances, SeeLevelAndPolarityAsTheyState) {
  const std::vector<float> sound = test::test_sound(2 * kRate), half = scaled(sound, 0.5f),
                           inverted = scaled(sound, -1);
  EXPECT_NEAR(score(snr, sound, half), 20 * std::log10(2), 1e-9);
  EXPECT_NEAR(score(snr, sound, inverted), -20 * std::log10(2), 1e-9);
  EXPECT_EQ(score(si_sdr, sound, half), kMostDb);
  EXPECT_EQ(score(si_sdr, sound, inverted), kMostDb);
  EXPECT_NEAR(score(log_spectral_distance, sound, half), 2 * std::log10(2), 1e-3);
  EXPECT_NEAR(score(mel_distance, sound, half), std::log10(2), 1e-3);
  EXPECT_NEAR(score(log_spectral_distance, sound, inverted), 0, 1e-6);
  EXPECT_NEAR(score(mel_distance, sound, inverted), 0, 1e-6);
  EXPECT_NEAR(score(stoi, sound, half), 1, 1e-9);
}

TEST(Distances, SeeADroppedEnd) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  std::vector<float> dropped = sound;
  std::fill(dropped.end() - kRate / 2, dropped.end(), 0.0f);
  EXPECT_LT(score(snr, sound, dropped), 10);
  EXPECT_LT(score(si_sdr, sound, dropped), 10);
  EXPECT_GT(score(log_spectral_distance, sound, dropped), 1);
  EXPECT_GT(score(mel_distance, sound, dropped), 0.1);
  EXPECT_LT(score(stoi, sound, dropped), 0.95);
  EXPECT_LT(score(extended_stoi, sound, dropped), 0.9);
}

TEST(Distances, ASilentDegradedSoundHasAScore) {
  const std::vector<float> sound = bursts(2 * kRate, kRate), silence(sound.size());
  EXPECT_EQ(score(si_sdr, sound, silence), -kMostDb);
  EXPECT_EQ(score(snr, sound, silence), 0);
  EXPECT_EQ(score(stoi, sound, silence), 0);
  EXPECT_EQ(score(extended_stoi, sound, silence), 0);
  EXPECT_GT(score(log_spectral_distance, sound, silence), 5);
  EXPECT_GT(score(mel_distance, sound, silence), 1);
  EXPECT_EQ(score(log_spectral_distance, silence, silence), 0);
  EXPECT_EQ(score(mel_distance, silence, silence), 0);
  for (const Metric metric : {stoi, extended_stoi, si_sdr, snr}) {
    const Result<double> result = metric(silence, sound, kRate);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("not silent"), std::string::npos) << result.error().message;
  }
}

TEST(Distances, RefuseWhatCannotBeMeasured) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  for (const Metric metric : kAll) {
    EXPECT_EQ(metric({}, sound, kRate).error().message, "the reference has no samples");
    EXPECT_EQ(metric(sound, {}, kRate).error().message, "the degraded sound has no samples");
    std::vector<float> bad = sound;
    bad[1234] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(metric(sound, bad, kRate).error().message,
              "expected finite samples, got NaN at sample 1234 of the degraded sound");
    bad[1234] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(metric(bad, sound, kRate).error().message,
              "expected finite samples, got an infinity at sample 1234 of the reference");
    EXPECT_EQ(metric(sound, std::span(sound).first(10), kRate).error().code, ErrorCode::mismatch);
    EXPECT_EQ(metric(sound, sound, 0).error().code, ErrorCode::usage);
    EXPECT_EQ(metric(sound, sound, 1 << 30).error().code, ErrorCode::usage);
  }
  const std::span<const float> brief = std::span(sound).first(1000);
  EXPECT_FALSE(stoi(brief, brief, kRate));
  EXPECT_FALSE(extended_stoi(brief.first(1), brief.first(1), kRate));
  EXPECT_FALSE(mel_distance(brief, brief, kRate));
  EXPECT_EQ(log_spectral_distance(brief.first(1), brief.first(1), kRate).value(), 0);
  EXPECT_EQ(snr(brief.first(100), brief.first(100), kRate).value(), kMostDb);
}

TEST(Resample, KeepsASineAndItsTime) {
  // 1 kHz at the one rate is 1 kHz at the other, and starts at the same moment.
  const auto sine = [](int rate_hz, std::size_t n) {
    return std::sin(2 * 3.141592653589793 * 1000 * static_cast<double>(n) / rate_hz);
  };
  for (const auto& [from, to] : {std::pair{16000, 10000}, std::pair{44100, 16000}, std::pair{24000, 48000}}) {
    std::vector<double> x(static_cast<std::size_t>(from / 5));
    for (std::size_t n = 0; n < x.size(); ++n) x[n] = sine(from, n);
    const std::vector<double> y = resample(x, from, to).value();
    ASSERT_EQ(y.size(), static_cast<std::size_t>(to / 5));
    for (std::size_t n = y.size() / 4; n < y.size() * 3 / 4; ++n) {
      ASSERT_NEAR(y[n], sine(to, n), 2e-3) << from << " " << to;
    }
  }
}

TEST(Resample, RefusesImpossibleRates) {
  const std::vector<double> x(100);
  EXPECT_EQ(resample(x, 16000, 16000).value(), x);
  EXPECT_EQ(resample(x, 16000, 0).error().code, ErrorCode::unsupported);
  EXPECT_EQ(resample(x, -16000, 16000).error().code, ErrorCode::unsupported);
  EXPECT_EQ(resample(x, 191999, 16000).error().code, ErrorCode::unsupported);
  EXPECT_EQ(resample({}, 16000, 10000).value().size(), 0u);
}

}  // namespace
}  // namespace tessera::metrics
