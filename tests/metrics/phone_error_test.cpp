// The phone classifier and the metric made of it: its front end against sums written out, the network by hand
// for one frame, what it is blind to, which frames count, and that it knows the phones of real speech.
#include "metrics/phone_error.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "core/cpu.h"
#include "metrics/metric_suite.h"
#include "metrics/phone_alignment.h"
#include "models/builtin.h"
#include "tests/metrics/support.h"

namespace tessera::metrics {
namespace {

using test::bursts;
using test::scaled;

constexpr int kRate = kPhoneRateHz;

std::vector<std::int32_t> answers(const Tensor& logits) {
  std::vector<std::int32_t> best;
  for (std::int64_t i = 0; i < logits.dim(0); ++i) {
    const float* row = logits.f32() + i * logits.dim(1);
    best.push_back(static_cast<std::int32_t>(std::max_element(row, row + logits.dim(1)) - row));
  }
  return best;
}

// A plain DFT of one frame, with the triangles between equidistant mels from 60 to 7800 Hz.
std::vector<double> mel_powers_of_frame(const std::vector<float>& sound, int frame) {
  std::vector<double> powers;
  const auto mel = [](double hz) { return 2595 * std::log10(1 + hz / 700); };
  const auto hz_of = [](double m) { return 700 * (std::pow(10, m / 2595) - 1); };
  const double step = (mel(7800) - mel(60)) / 41;
  std::vector<double> spectrum;
  for (int k = 0; k <= 256; ++k) {
    std::complex<double> sum;
    for (int n = 0; n < 400; ++n) {
      const int at = frame * 160 - 120 + n;
      if (at < 0 || at >= static_cast<int>(sound.size())) continue;
      const double window = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * n / 400);
      sum += window * static_cast<double>(sound[static_cast<std::size_t>(at)]) *
             std::polar(1.0, -2 * std::numbers::pi * k * n / 512);
    }
    spectrum.push_back(std::norm(sum));
  }
  for (int b = 0; b < 40; ++b) {
    const double left = hz_of(mel(60) + b * step), middle = hz_of(mel(60) + (b + 1) * step),
                 right = hz_of(mel(60) + (b + 2) * step);
    double power = 0, weights = 0;
    for (int k = 0; k <= 256; ++k) {
      const double hz = k * 31.25;
      const double weight =
          std::max(0.0, std::min((hz - left) / (middle - left), (right - hz) / (right - middle)));
      power += weight * spectrum[static_cast<std::size_t>(k)];
      weights += weight;
    }
    powers.push_back(power / weights);
  }
  return powers;
}

TEST(PhoneClassifier, FrontEndIsThatOfTheFormula) {
  const std::vector<float> sound = bursts(1700, kRate);
  const std::vector<float> powers = phone_mel_powers(sound);
  ASSERT_EQ(powers.size(), 10u * kPhoneBands);
  for (const int frame : {0, 1, 4, 9}) {
    const std::vector<double> expected = mel_powers_of_frame(sound, frame);
    for (std::size_t b = 0; b < expected.size(); ++b) {
      const double power = powers[static_cast<std::size_t>(frame) * kPhoneBands + b];
      EXPECT_NEAR(power, expected[b], 1e-5 * expected[b] + 1e-9) << frame << " " << b;
    }
  }
}

TEST(PhoneClassifier, FeaturesAreFreeOfLevelAndOfAnEqualizer) {
  const std::vector<float> powers = phone_mel_powers(bursts(kRate, kRate));
  const std::vector<float> features = phone_features(powers);
  ASSERT_EQ(features.size(), powers.size() + 2u * kPhoneContext * kPhoneBands);
  EXPECT_EQ(features.front(), 0);
  EXPECT_EQ(features.back(), 0);
  std::vector<double> sums(kPhoneBands);
  for (std::size_t i = 0; i < features.size(); ++i) sums[i % kPhoneBands] += features[i];
  for (const double sum : sums) EXPECT_NEAR(sum, 0, 1e-4);
  std::vector<float> quieter = powers;
  for (float& power : quieter) power *= 0x1p-12f;
  const std::vector<float> same = phone_features(quieter);
  for (std::size_t i = 0; i < features.size(); ++i) EXPECT_NEAR(same[i], features[i], 1e-5f);
  for (const float value : phone_features(std::vector<float>(20 * kPhoneBands))) EXPECT_NEAR(value, 0, 1e-6f);
}

TEST(PhoneClassifier, BuiltinIsWhatTheFileSays) {
  const PhoneClassifier classifier = PhoneClassifier::builtin().value();
  EXPECT_EQ(classifier.classes(), 40);
  EXPECT_EQ(classifier.phones().front(), "<sil>");
  const auto file =
      SafeTensors::open(std::string(TESSERA_SOURCE_DIR) + "/models/phone_classifier.safetensors");
  ASSERT_TRUE(file);
  const auto built_in = builtin_phone_classifier();
  EXPECT_TRUE(std::ranges::equal((*file)->bytes(), built_in));
  EXPECT_EQ(classifier.hash().size(), 16u);
  ThreadPool pool;
  const std::vector<float> sound = bursts(kRate + 100, kRate);
  const Tensor logits = classifier.logits(sound, kRate, pool).value();
  EXPECT_EQ(logits.shape(), (Shape{100, 40}));
  // Long sounds go through in blocks: the same as a network that sees all at once.
  const std::vector<float> minute = bursts(45 * kRate, kRate, 3);
  const Tensor blocks = classifier.logits(minute, kRate, pool).value();
  std::vector<PhoneLayer> layers = phone_layers(40);
  for (PhoneLayer& layer : layers) {
    const auto read = [&](const std::string& name, const Shape& shape) {
      const std::vector<float> values = (*file)->read_f32(name, shape).value();
      Tensor tensor = Tensor::zeros(shape);
      std::ranges::copy(values, tensor.f32());
      return tensor;
    };
    layer.weights = read(layer.name + ".weight", layer.shape);
    layer.bias = read(layer.name + ".bias", {layer.shape[2]});
  }
  const std::vector<float> features = phone_features(phone_mel_powers(minute));
  Tensor x = Tensor::zeros({1, 4500 + 2 * kPhoneContext, kPhoneBands});
  std::ranges::copy(features, x.f32());
  Tape tape(pool);
  const Tensor whole = phone_logits(tape, x, layers);
  ASSERT_EQ(whole.shape(), (Shape{1, 4500, 40}));
  EXPECT_TRUE(std::equal(whole.f32(), whole.f32() + whole.size(), blocks.f32()));
}

// Rows of the network's layers by their definition, in double.
TEST(PhoneClassifier, NetworkIsThatOfTheFormula) {
  std::vector<PhoneLayer> layers = phone_layers(3);
  std::uint64_t seed = 1;
  const auto filled = [&](const Shape& shape, float size) {
    Tensor tensor = Tensor::zeros(shape);
    std::ranges::copy(test::random_floats(static_cast<std::size_t>(shape.size()), seed++, size),
                      tensor.f32());
    return tensor;
  };
  for (PhoneLayer& layer : layers) {
    layer.weights = filled(layer.shape, 0.08f);
    layer.bias = filled({layer.shape[2]}, 0.1f);
  }
  const Tensor x = filled({1, 2 * kPhoneContext + 1, kPhoneBands}, 1);
  std::vector<std::vector<double>> rows;
  for (std::int64_t t = 0; t < x.dim(1); ++t) {
    rows.emplace_back(x.f32() + t * kPhoneBands, x.f32() + (t + 1) * kPhoneBands);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& [name, shape, dilation, weights, bias] = layers[i];
    const std::size_t reach = static_cast<std::size_t>((shape[0] - 1) / 2 * dilation);
    std::vector<std::vector<double>> outputs;
    for (std::size_t t = reach; t + reach < rows.size(); ++t) {
      std::vector<double>& output = outputs.emplace_back();
      for (std::int64_t o = 0; o < shape[2]; ++o) {
        double sum = bias.f32()[o];
        for (std::int64_t tap = 0; tap < shape[0]; ++tap) {
          const auto& row = rows[t - reach + static_cast<std::size_t>(tap * dilation)];
          for (std::int64_t c = 0; c < shape[1]; ++c) {
            sum += weights.f32()[(tap * shape[1] + c) * shape[2] + o] * row[static_cast<std::size_t>(c)];
          }
        }
        const bool last = i + 1 == layers.size();
        if (!last && sum < 0) sum *= 0.1;
        output.push_back(sum + (i > 0 && !last ? rows[t][static_cast<std::size_t>(o)] : 0));
      }
    }
    rows = outputs;
  }
  ASSERT_EQ(rows.size(), 1u);
  ThreadPool pool;
  Tape tape(pool);
  const Tensor logits = phone_logits(tape, x, layers);
  ASSERT_EQ(logits.shape(), (Shape{1, 1, 3}));
  for (std::size_t o = 0; o < 3; ++o)
    EXPECT_NEAR(logits.f32()[o], rows[0][o], 1e-4 * (1 + std::abs(rows[0][o])));
}

TEST(PhoneClassifier, SaysWhatIsWrong) {
  const PhoneClassifier classifier = PhoneClassifier::builtin().value();
  ThreadPool pool;
  const std::vector<float> sound = bursts(kRate, kRate);
  EXPECT_EQ(classifier.logits(sound, 24000, pool).error().code, ErrorCode::usage);
  EXPECT_EQ(classifier.logits(std::span(sound).first(159), kRate, pool).error().message,
            "expected at least 160 samples to name a phone, got 159");
  EXPECT_EQ(classifier.logits(std::span(sound).first(160), kRate, pool).value().dim(0), 1);
  EXPECT_FALSE(classifier.logits({}, kRate, pool));
  const std::string path = testing::TempDir() + "phone_classifier_test.safetensors";
  const std::vector<float> value(1);
  const NamedTensor tensor{"conv0.weight", DType::f32, {1}, std::as_bytes(std::span(value))};
  write_safetensors(path, std::span(&tensor, 1)).value();
  EXPECT_EQ(PhoneClassifier::load(*SafeTensors::open(path).value()).error().message,
            path + ": expected names of phones under \"phones\", got 0");
  write_safetensors(path, std::span(&tensor, 1), {{"phones", "<sil> A"}}).value();
  EXPECT_EQ(PhoneClassifier::load(*SafeTensors::open(path).value()).error().code, ErrorCode::mismatch);
  std::filesystem::remove(path);
}

TEST(PhoneError, CountsFramesWithinPhones) {
  const PhoneClassifier classifier = PhoneClassifier::builtin().value();
  ThreadPool pool;
  const std::vector<float> sound = bursts(kRate, kRate);
  const auto heard = answers(classifier.logits(sound, kRate, pool).value());
  std::vector<std::int32_t> labels = heard;
  std::ranges::replace(labels, 0, 7);  // silence heard in a phone is wrong
  EXPECT_NEAR(phone_error(classifier, sound, kRate, labels, pool).value(),
              100.0 * static_cast<double>(std::ranges::count(heard, 0)) / static_cast<double>(heard.size()),
              1e-9);
  // Ten frames that are wrong, ten that do not count, labels that end early.
  for (std::size_t i = 0; i < 10; ++i) labels[i] = heard[i] == 9 ? 8 : 9;
  std::fill_n(labels.begin() + 10, 5, 0);
  std::fill_n(labels.begin() + 15, 5, -1);
  EXPECT_EQ(phone_error(classifier, sound, kRate, std::span(labels).first(20), pool).value(), 100);
  labels.resize(300, 3);
  EXPECT_TRUE(phone_error(classifier, sound, kRate, labels, pool));
  EXPECT_EQ(phone_error(classifier, sound, kRate, std::vector<std::int32_t>(100), pool).error().message,
            "expected phones in the alignment within the sound, got none in 100 frames");
  EXPECT_FALSE(phone_error(classifier, sound, kRate, {}, pool));
}

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "phone_error_test.tsv";
  std::ofstream(path) << text;
  return path;
}

TEST(PhoneError, SuiteAsksForAnAlignmentOfTheRecording) {
  SuiteOptions options;
  options.metrics = {"phone_error", "snr"};
  const MetricSuite without = MetricSuite::load(options).value();
  ASSERT_EQ(without.unavailable().size(), 1u);
  EXPECT_EQ(without.unavailable()[0].reason, "needs phone alignments");
  EXPECT_FALSE(without.covers("phone_error", "a"));
  const std::string path = written("a\t0:<sil> 10:AH 60:T 90:</s>\n");
  options.alignments = PhoneAlignments::read(std::span(&path, 1)).value();
  const MetricSuite with = MetricSuite::load(options).value();
  EXPECT_TRUE(with.covers("phone_error", "x/a.wav"));
  EXPECT_TRUE(with.covers("snr", "b"));
  EXPECT_FALSE(with.covers("phone_error", "b"));
  EXPECT_EQ(with.built_in_hash("phone_error").size(), 16u);
  EXPECT_EQ(with.built_in_hash("snr") + with.known_hash("snr", "a"), "");
  EXPECT_EQ(with.known_hash("phone_error", "x/a.wav"), options.alignments->hash("a"));
  ThreadPool pool;
  const std::vector<float> sound = bursts(kRate, kRate);
  const Report of_b = with.compute(sound, sound, kRate, pool, "b").value();
  ASSERT_EQ(of_b.unscored.size(), 1u);
  EXPECT_EQ(of_b.unscored[0].reason, "no phone alignment of \"b\"");
  EXPECT_EQ(with.compute(sound, sound, kRate, pool).value().scores.size(), 1u);
  // The numbers of the classifier, not those of the file.
  const PhoneClassifier classifier = PhoneClassifier::builtin().value();
  const auto& phones = classifier.phones();
  std::vector<std::int32_t> labels(100, -1);
  for (std::size_t i = 10; i < 90; ++i) {
    labels[i] = static_cast<std::int32_t>(std::ranges::find(phones, i < 60 ? "AH" : "T") - phones.begin());
  }
  const Report of_a = with.compute(sound, sound, kRate, pool, "a").value();
  ASSERT_EQ(of_a.scores.size(), 2u);
  EXPECT_EQ(of_a.scores.back().name, "phone_error");
  EXPECT_EQ(of_a.scores.back().value, phone_error(classifier, sound, kRate, labels, pool).value());
  // A sound that came 25 ms early: the reference loses its start, and so does the alignment.
  const std::vector<float> early(sound.begin() + 400, sound.end());
  const Report of_early = with.compute(sound, early, kRate, pool, "a").value();
  EXPECT_EQ(of_early.delay_samples, -400);
  std::vector<std::int32_t> rest(labels.begin() + 3, labels.end());  // middles at 30, 40 ... ms
  EXPECT_EQ(of_early.scores.back().value, phone_error(classifier, early, kRate, rest, pool).value());
  const std::string unknown = written("a\t0:<sil> 10:Q 90:</s>\n");
  options.alignments = PhoneAlignments::read(std::span(&unknown, 1)).value();
  const auto failed = MetricSuite::load(options);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::mismatch);
  EXPECT_TRUE(failed.error().message.starts_with("phone_error: expected alignments of the phones "))
      << failed.error().message;
  EXPECT_TRUE(failed.error().message.ends_with(", got \"Q\"")) << failed.error().message;
  std::filesystem::remove(path);
}

TEST(PhoneError, EveryInstructionSetAndThreadGivesTheSameBits) {
  const PhoneClassifier classifier = PhoneClassifier::builtin().value();
  ThreadPool one(1), three(3);
  const std::vector<float> sound = bursts(kRate, kRate);
  const Tensor best = classifier.logits(sound, kRate, one).value();
  const auto same = [&](const Tensor& other) {
    return std::equal(best.f32(), best.f32() + best.size(), other.f32());
  };
  EXPECT_TRUE(same(classifier.logits(sound, kRate, three).value()));
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target));
    EXPECT_TRUE(same(classifier.logits(sound, kRate, one).value())) << target;
  }
  ASSERT_TRUE(set_cpu_target(""));
}

// Held-out speakers. Guessing the commonest phone reaches 88 %.
TEST(PhoneError, KnowsThePhonesOfRealSpeech) {
  TESSERA_NEED_SHARED("data/speech16/align");
  const std::string path = test::shared("data/speech16/align/so762.tsv");
  SuiteOptions options;
  options.metrics = {"phone_error"};
  options.alignments = PhoneAlignments::read(std::span(&path, 1)).value();
  const MetricSuite suite = MetricSuite::load(options).value();
  ThreadPool pool;
  const auto score = [&](const std::string& name, const std::vector<float>& reference,
                         const std::vector<float>& degraded) {
    return suite.compute(reference, degraded, kRate, pool, name).value().scores.at(0).value;
  };
  double plain = 0, quiet = 0, noisy = 0, silent_sound = 0;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared("data/speech16/test_so762"))) {
    if (count == 12) break;
    const std::string name = entry.path().filename().string();
    if (!options.alignments->contains(name)) continue;
    ++count;
    const std::vector<float> sound = test::read_recording("data/speech16/test_so762/" + name).samples;
    plain += score(name, sound, sound);
    quiet += score(name, sound, scaled(sound, 0.01f));
    float peak = 0;
    for (const float sample : sound) peak = std::max(peak, std::abs(sample));
    noisy += score(name, sound, test::mixed(sound, test::random_floats(sound.size(), 9), 0.3f * peak));
    silent_sound += score(name, sound, std::vector<float>(sound.size()));
  }
  ASSERT_EQ(count, 12);
  EXPECT_LT(plain / count, 65);
  EXPECT_NEAR(quiet, plain, 1);
  EXPECT_GT(noisy / count, plain / count + 10);
  EXPECT_GT(silent_sound / count, 90);
}

}  // namespace
}  // namespace tessera::metrics
