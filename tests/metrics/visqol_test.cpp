// ViSQOL against its published scores, its parts against an independent evaluation in NumPy, and bad input.
#include "metrics/visqol.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "metrics/gammatone.h"
#include "metrics/nsim.h"
#include "metrics/visqol_align.h"
#include "metrics/visqol_patches.h"
#include "tests/metrics/support.h"

namespace tessera::metrics {
namespace {

using test::bursts;
using test::late;
using test::random_floats;
using test::read_recording;
using test::scaled;
using test::shared;

constexpr int kRate = 16000;

Visqol visqol(VisqolMode mode, bool scaled = true) {
  VisqolOptions options;
  options.mode = mode;
  options.scaled = scaled;
  options.model_path = shared(mode == VisqolMode::audio ? "metrics/visqol/libsvm_nu_svr_model.txt"
                                                        : "metrics/visqol/visqol_lattice.tflite");
  return Visqol::load(options).value();
}

struct Published {
  const char *reference, *degraded;
  VisqolMode mode;
  bool scaled;
  double score;
};

TEST(Visqol, ReproducesPublishedScores) {
  TESSERA_NEED_SHARED("metrics/visqol");
  constexpr Published kScores[] = {
      {"contrabassoon48_stereo", "contrabassoon48_stereo_24kbps_aac", VisqolMode::audio, true,
       2.346868205375293},
      {"guitar48_stereo", "guitar48_stereo_64kbps_aac", VisqolMode::audio, true, 4.349722308064298},
      {"ravel48_stereo", "ravel48_stereo_128kbps_opus", VisqolMode::audio, true, 4.465141897255348},
      {"glock48_stereo", "glock48_stereo_48kbps_aac", VisqolMode::audio, true, 4.332452943882108},
      {"strauss48_stereo", "strauss48_stereo_lp35", VisqolMode::audio, true, 1.3888791489130758},
      {"CA01_01", "transcoded_CA01_01", VisqolMode::audio, true, 1.7658378752958486},
      {"CA01_01", "transcoded_CA01_01", VisqolMode::speech, true, 3.374505555111911},
      {"CA01_01", "transcoded_CA01_01", VisqolMode::speech_lattice, true, 3.3129234313964844},
      {"CA01_01", "CA01_01", VisqolMode::speech, false, 4.015861169223797},
      {"CA01_01", "CA01_01", VisqolMode::speech_lattice, true, 4.505550384521484},
  };
  for (const Published& published : kScores) {
    const auto reference = read_recording("metrics/visqol/" + std::string(published.reference) + ".flac");
    const auto degraded = read_recording("metrics/visqol/" + std::string(published.degraded) + ".flac");
    const VisqolScore score = visqol(published.mode, published.scaled)
                                  .score(reference.samples, degraded.samples, reference.rate_hz)
                                  .value();
    EXPECT_NEAR(score.mos_lqo, published.score, 0.004) << published.degraded;
  }
}

TEST(Visqol, AgreesWithAnIndependentProgramOnSpeech) {
  TESSERA_NEED_SHARED("data/speech16");
  struct Mixture {
    const char *speech, *other;
    float factor;
    double score, similarity;  // by visqol-python 3.8.0
    std::size_t patches;
  };
  constexpr Mixture kMixtures[] = {
      {"test_libri_tc/103-1240-0000", "test_libri_tc/1235-135883-0000", 0.05f, 4.882889688353298,
       0.9771535699873382, 19},
      {"test_so762/000240010", "test_so762/003060002", 0.1f, 4.40961465764753, 0.8847428448429129, 4},
      {"test_so762/003060002", "test_libri_tc/103-1240-0000", 0.3f, 3.805197160917237, 0.7665337015608419, 9},
  };
  for (const Mixture& mixture : kMixtures) {
    const auto speech = read_recording("data/speech16/" + std::string(mixture.speech) + ".flac").samples;
    const auto other = read_recording("data/speech16/" + std::string(mixture.other) + ".flac").samples;
    const auto degraded = late(test::mixed(speech, other, mixture.factor), 123);
    const VisqolScore score = visqol(VisqolMode::speech).score(speech, degraded, kRate).value();
    EXPECT_NEAR(score.mos_lqo, mixture.score, 1e-6) << mixture.speech;
    EXPECT_NEAR(score.similarity, mixture.similarity, 1e-7) << mixture.speech;
    EXPECT_EQ(score.patches, mixture.patches) << mixture.speech;
  }
}

TEST(Visqol, EqualSoundsScoreBest) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  const Visqol speech = visqol(VisqolMode::speech);
  const VisqolScore same = speech.score(sound, sound, kRate).value();
  EXPECT_NEAR(same.mos_lqo, 5, 1e-3);
  EXPECT_NEAR(same.similarity, 1, 1e-9);
  EXPECT_GT(same.patches, 2u);
  // Levels are made equal, and magnitudes know no polarity.
  EXPECT_NEAR(speech.score(sound, scaled(sound, 0.5f), kRate).value().similarity, 1, 1e-9);
  EXPECT_NEAR(speech.score(sound, scaled(sound, -1), kRate).value().similarity, 1, 1e-9);
}

TEST(Visqol, ALateSoundScoresLikeAPunctualOne) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  const std::vector<float> noisy = test::mixed(sound, random_floats(sound.size(), 5), 0.02f);
  const Visqol speech = visqol(VisqolMode::speech);
  const double punctual = speech.score(sound, noisy, kRate).value().mos_lqo;
  EXPECT_LT(punctual, 4.5);
  for (const std::size_t delay : {16u, 160u, 1600u}) {
    EXPECT_NEAR(speech.score(sound, late(noisy, delay), kRate).value().mos_lqo, punctual, 0.02) << delay;
  }
}

TEST(Visqol, DamageCosts) {
  const std::vector<float> sound = bursts(2 * kRate, kRate);
  const Visqol speech = visqol(VisqolMode::speech);
  std::vector<float> dropped = sound;
  std::fill(dropped.end() - kRate, dropped.end(), 0.0f);
  EXPECT_LT(speech.score(sound, dropped, kRate).value().mos_lqo, 4);
  double before = 5;
  for (const float noise : {0.01f, 0.1f, 1.0f}) {
    const auto noisy = test::mixed(sound, random_floats(sound.size(), 5), noise);
    const double score = speech.score(sound, noisy, kRate).value().mos_lqo;
    EXPECT_LT(score, before) << noise;
    before = score;
  }
}

TEST(Visqol, RefusesWhatCannotBeMeasured) {
  const std::vector<float> sound = bursts(kRate, kRate), silence(sound.size());
  const Visqol speech = visqol(VisqolMode::speech);
  EXPECT_EQ(speech.score(sound, silence, kRate).value().mos_lqo, 1);
  EXPECT_EQ(speech.score(silence, sound, kRate).error().message,
            "ViSQOL needs a reference that is not silent");
  EXPECT_EQ(speech.score({}, sound, kRate).error().code, ErrorCode::format);
  EXPECT_EQ(speech.score(sound, {}, kRate).error().code, ErrorCode::format);
  EXPECT_EQ(speech.score(std::span(sound).first(10239), sound, kRate).error().message,
            "ViSQOL needs 10240 samples of reference at this rate, got 10239");
  EXPECT_TRUE(speech.score(std::span(sound).first(10240), sound, kRate));
  EXPECT_FALSE(speech.score(sound, std::span(sound).first(1), kRate));
  EXPECT_TRUE(speech.score(sound, std::span(sound).first(2000), kRate));
  std::vector<float> bad = sound;
  bad[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(speech.score(sound, bad, kRate).error().code, ErrorCode::format);
  // The loudest and the faintest floats.
  EXPECT_TRUE(speech.score(scaled(sound, 1e30f), scaled(sound, 1e-30f), kRate));
}

Spectrogram first_frames(Spectrogram spectrogram, std::size_t frames) {
  spectrogram.frames = frames;
  spectrogram.values.resize(frames * spectrogram.bands);
  return spectrogram;
}

TEST(Gammatone, IsThatOfAnIndependentProgram) {
  const std::vector<float> noise = random_floats(8000, 7);
  const std::vector<double> x(noise.begin(), noise.end());
  const Spectrogram speech = GammatoneFilterbank(16000, 21, 8000)(x);
  ASSERT_EQ(speech.frames, 22u);
  EXPECT_NEAR(speech.row(0)[0], 0.0211667396839549, 1e-12);
  EXPECT_NEAR(speech.row(5)[10], 0.0509985687589462, 1e-12);
  EXPECT_NEAR(speech.row(20)[20], 0.106355932769105, 1e-12);
  const Spectrogram audio = GammatoneFilterbank(48000, 32, 24000)(x);
  ASSERT_EQ(audio.frames, 5u);
  EXPECT_NEAR(audio.row(0)[0], 0.0151443688987983, 1e-12);
  EXPECT_NEAR(audio.row(2)[16], 0.0434492706369555, 1e-12);
  EXPECT_NEAR(audio.row(4)[31], 0.114070932603485, 1e-12);
}

TEST(Nsim, IsThatOfAnIndependentProgram) {
  const std::vector<float> a = random_floats(8000, 7), b = random_floats(8000, 8);
  std::vector<double> x(a.begin(), a.end()), y(x);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += 0.3 * b[i];
  const GammatoneFilterbank filterbank(16000, 21, 8000);
  Spectrogram reference = filterbank(x), degraded = filterbank(y);
  prepare_for_comparison(reference, degraded);
  const NeighbourSums r(reference), d(degraded);
  const PatchMatch match = compare(r, 0, d, 0, 20);
  EXPECT_NEAR(match.similarity, 0.8948567407671171, 1e-10);
  EXPECT_NEAR(match.band_means[0], 0.83159837, 1e-8);
  EXPECT_NEAR(match.band_means[10], 0.933831, 1e-6);
  EXPECT_NEAR(match.band_deviations[0], 0.21509731, 1e-8);
  EXPECT_NEAR(match.band_energies[10], 6.65182288, 1e-7);
  // A patch of a long spectrogram is the patch of a short one, edges included.
  const Spectrogram brief = first_frames(reference, 20), brief_degraded = first_frames(degraded, 20);
  EXPECT_EQ(compare(NeighbourSums(brief), 0, NeighbourSums(brief_degraded), 0, 20).similarity,
            match.similarity);
  EXPECT_NEAR(compare(r, 0, r, 0, 20).similarity, 1, 1e-12);
}

TEST(Patches, LieWhereSomebodySpeaks) {
  EXPECT_EQ(even_patches(44, 30), std::vector<std::size_t>());
  EXPECT_EQ(even_patches(45, 30), std::vector<std::size_t>({14}));
  EXPECT_EQ(even_patches(110, 30), std::vector<std::size_t>({14, 44, 74}));
  std::vector<double> sound(320 * 100);
  for (std::size_t i = 320 * 61; i < 320 * 70; ++i) sound[i] = i % 2 ? 0.5 : -0.5;
  // The first frames count as speech, as published; then only the patch at 3 x 20 frames.
  EXPECT_EQ(voiced_patches(sound, 320, 97, 20), std::vector<std::size_t>({9, 69}));
}

TEST(EnvelopeLag, FindsShiftsBothWays) {
  const std::vector<float> burst = bursts(6000, kRate);
  const std::vector<double> sound(burst.begin(), burst.end());
  EXPECT_EQ(envelope_lag(sound, sound), 0);
  EXPECT_EQ(envelope_lag(delayed(sound, 100), sound), 100);
  EXPECT_EQ(envelope_lag(sound, delayed(sound, 100)), -100);
  EXPECT_EQ(delayed(delayed(sound, 100), -100), sound);
  EXPECT_TRUE(delayed(sound, -6001).empty());
}

TEST(Svr, ReadsAndRefuses) {
  const std::string good =
      "svm_type nu_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho -1.5\nSV\n1 1:1 2:0 \n-2 "
      "2:3\n";
  const SvrModel model = SvrModel::parse(good, "model").value();
  EXPECT_EQ(model.features(), 2u);
  const double at[] = {1.0, 2.0};
  EXPECT_NEAR(model.predict(at), 1.5 + std::exp(-0.5 * 4) - 2 * std::exp(-0.5 * 2), 1e-14);
  const auto error = [](const std::string& text) { return SvrModel::parse(text, "model").error().message; };
  EXPECT_EQ(error("svm_type nu_svr\nfoo 1\n"),
            "model: line 2: expected a field of a support-vector model, got \"foo\"");
  EXPECT_EQ(error(good + "1 5000:1\n"),
            "model: line 10: expected index:value with an index of 1 to 4096, got \"5000:1\"");
  EXPECT_EQ(error(good + "nan 1:1\n"),
            "model: line 10: expected the weight of a support vector, got \"nan\"");
  EXPECT_FALSE(SvrModel::parse("", "model"));
  EXPECT_FALSE(SvrModel::parse(good.substr(0, good.find("1 1:1")), "model"));
  EXPECT_EQ(SvrModel::open("/no/such/file").error().code, ErrorCode::io);
}

}  // namespace
}  // namespace tessera::metrics
