// The speech embedding against a plain reference in double with random weights, against the published
// network's numbers where the fixtures are, and how its frames lie on a recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>

#include "codec/media.h"
#include "core/error.h"
#include "core/npy.h"
#include "tests/random.h"
#include "train/teachers/speech_embedding.h"

namespace tessera::train {
namespace {

using test::random_floats;

struct Conv {
  int kernel_t, kernel_f, inputs, outputs, pool_t, pool_f;
};
// As the published layers.json lists them.
constexpr Conv kConvs[20] = {
    {3, 3, 1, 24, 1, 1},  {1, 3, 24, 24, 1, 1}, {3, 1, 24, 24, 2, 2}, {1, 3, 24, 48, 1, 1},
    {3, 1, 48, 48, 1, 1}, {1, 3, 48, 48, 1, 1}, {3, 1, 48, 48, 1, 2}, {1, 3, 48, 72, 1, 1},
    {3, 1, 72, 72, 1, 1}, {1, 3, 72, 72, 1, 1}, {3, 1, 72, 72, 2, 2}, {1, 3, 72, 96, 1, 1},
    {3, 1, 96, 96, 1, 1}, {1, 3, 96, 96, 1, 1}, {3, 1, 96, 96, 1, 2}, {1, 3, 96, 96, 1, 1},
    {3, 1, 96, 96, 1, 1}, {1, 3, 96, 96, 1, 1}, {3, 1, 96, 96, 2, 2}, {3, 1, 96, 96, 1, 1}};

struct Weight {
  Shape shape;
  std::vector<float> values;
};
using Weights = std::map<std::string, Weight>;

/// Random weights under the published names; the window and the bands have gaps as the published ones have.
Weights random_weights() {
  Weights weights;
  for (int i = 0; i < 20; ++i) {
    const Conv& conv = kConvs[i];
    const std::string name = (i < 10 ? "conv0" : "conv") + std::to_string(i);
    const int fan_in = conv.kernel_t * conv.kernel_f * conv.inputs;
    weights[name + ".weight"] = {
        {conv.kernel_t, conv.kernel_f, conv.inputs, conv.outputs},
        random_floats(static_cast<std::size_t>(fan_in * conv.outputs), static_cast<std::uint64_t>(i) + 1,
                      2.5f / std::sqrt(static_cast<float>(fan_in)))};
    if (i == 19) break;
    weights[name + ".bias"] = {
        {conv.outputs},
        random_floats(static_cast<std::size_t>(conv.outputs), static_cast<std::uint64_t>(i) + 50, 0.3f)};
  }
  std::vector<float> window = random_floats(512, 90), matrix(257 * 32);
  for (std::size_t n = 0; n < 512; ++n) {
    if (n < 57 || n > 455) window[n] = 0;
  }
  for (std::size_t band = 0; band < 32; ++band) {
    for (std::size_t bin = 3 + 3 * band; bin < 8 + 3 * band; ++bin) matrix[bin * 32 + band] = 0.01f;
  }
  weights["mel.window"] = {{512}, window};
  weights["mel.matrix"] = {{257, 32}, matrix};
  return weights;
}

Result<std::unique_ptr<SpeechEmbedding>> load(const Weights& weights, bool floor) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, weight] : weights) {
    tensors.push_back({name, DType::f32, weight.shape, std::as_bytes(std::span(weight.values))});
  }
  std::vector<std::byte> bytes;
  const ByteSink sink = [&bytes](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return Result<void>();
  };
  EXPECT_TRUE(write_safetensors(sink, tensors));
  const auto file = SafeTensors::parse(bytes, "weights");
  EXPECT_TRUE(file);
  return SpeechEmbedding::load(**file, {.floor = floor});
}

std::vector<double> reference_mel(const Weights& weights, const std::vector<float>& pcm, bool floor) {
  const auto& window = weights.at("mel.window").values;
  const auto& matrix = weights.at("mel.matrix").values;
  std::vector<double> mel;
  for (std::size_t begin = 0; begin + 512 <= pcm.size(); begin += 160) {
    std::vector<double> energy(32);
    for (std::size_t bin = 0; bin < 257; ++bin) {
      double real = 0, imaginary = 0;
      for (std::size_t n = 0; n < 512; ++n) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(bin * n % 512) / 512;
        const double sample = 32768.0 * pcm[begin + n] * window[n];
        real += sample * std::cos(angle);
        imaginary -= sample * std::sin(angle);
      }
      for (std::size_t band = 0; band < 32; ++band) {
        energy[band] += (real * real + imaginary * imaginary) * matrix[bin * 32 + band];
      }
    }
    for (const double value : energy) mel.push_back(std::log10(std::max(value, 1e-10)) + 2);
  }
  const double lowest = *std::max_element(mel.begin(), mel.end()) - 8;
  for (double& value : mel) value = floor ? std::max(value, lowest) : value;
  return mel;
}

/// The network over mel [frames, 32], loop by loop.
std::vector<double> reference_embeddings(const Weights& weights, std::vector<double> x) {
  int bands = 32, frames = static_cast<int>(x.size()) / bands;
  for (int i = 0; i < 20; ++i) {
    const Conv& conv = kConvs[i];
    const std::string name = (i < 10 ? "conv0" : "conv") + std::to_string(i);
    const auto& weight = weights.at(name + ".weight").values;
    const int out_frames = frames - conv.kernel_t + 1;
    std::vector<double> y(static_cast<std::size_t>(out_frames * bands * conv.outputs));
    for (int t = 0; t < out_frames; ++t) {
      for (int f = 0; f < bands; ++f) {
        double* out = y.data() + (t * bands + f) * conv.outputs;
        for (int o = 0; i < 19 && o < conv.outputs; ++o) {
          out[o] = weights.at(name + ".bias").values[static_cast<std::size_t>(o)];
        }
        for (int a = 0; a < conv.kernel_t; ++a) {
          for (int b = 0; b < conv.kernel_f; ++b) {
            const int band = f + b - conv.kernel_f / 2;
            for (int c = 0; band >= 0 && band < bands && c < conv.inputs; ++c) {
              const double in = x[static_cast<std::size_t>(((t + a) * bands + band) * conv.inputs + c)];
              const float* w = weight.data() + ((a * conv.kernel_f + b) * conv.inputs + c) * conv.outputs;
              for (int o = 0; o < conv.outputs; ++o) out[o] += in * w[o];
            }
          }
        }
        for (int o = 0; i < 19 && o < conv.outputs; ++o) {
          if (out[o] < 0) out[o] = std::max(0.2 * out[o], -0.4);
        }
      }
    }
    const int pooled_frames = out_frames / conv.pool_t, pooled_bands = bands / conv.pool_f;
    x.assign(static_cast<std::size_t>(pooled_frames * pooled_bands * conv.outputs), -1e300);
    for (int t = 0; t < pooled_frames * conv.pool_t; ++t) {
      for (int f = 0; f < bands; ++f) {
        for (int o = 0; o < conv.outputs; ++o) {
          const int row = t / conv.pool_t * pooled_bands + f / conv.pool_f;
          double& to = x[static_cast<std::size_t>(row * conv.outputs + o)];
          to = std::max(to, y[static_cast<std::size_t>((t * bands + f) * conv.outputs + o)]);
        }
      }
    }
    frames = pooled_frames;
    bands = pooled_bands;
  }
  return x;
}

template <class T>
void expect_close(const Tensor& got, const T* expected, std::size_t size, double tolerance) {
  ASSERT_EQ(static_cast<std::size_t>(got.size()), size);
  double worst = 0;
  for (std::size_t i = 0; i < size; ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got.f32()[i]) - static_cast<double>(expected[i])));
    ASSERT_FALSE(std::isnan(got.f32()[i])) << i;
  }
  EXPECT_LE(worst, tolerance);
}

std::vector<float> rows_of(const Tensor& x, std::int64_t begin, std::int64_t count) {
  return {x.f32() + begin * x.dim(1), x.f32() + (begin + count) * x.dim(1)};
}
std::vector<float> values_of(const Tensor& x) {
  return rows_of(x, 0, x.dim(0));
}

TEST(SpeechEmbedding, MelIsThatOfAPlainLoop) {
  const Weights weights = random_weights();
  ThreadPool pool(2);
  std::vector<float> pcm = test::test_sound(2100);
  std::fill(pcm.begin() + 600, pcm.begin() + 1400, 0.0f);  // a silent stretch, where the floors show
  for (const bool floor : {false, true}) {
    const auto teacher = load(weights, floor).value();
    const Tensor mel = teacher->mel(pcm, pool);
    EXPECT_EQ(mel.shape(), (Shape{10, 32}));
    const auto expected = reference_mel(weights, pcm, floor);
    EXPECT_EQ(*std::min_element(expected.begin(), expected.end()) == -8, !floor);
    expect_close(mel, expected.data(), expected.size(), 1e-4);
  }
}

TEST(SpeechEmbedding, NetworkIsThatOfAPlainLoop) {
  const Weights weights = random_weights();
  ThreadPool pool(2);
  const auto teacher = load(weights, true).value();
  Tensor mel = Tensor::zeros({95, 32});  // windows start at 0, 8 and 16; three frames are left over
  const auto values = random_floats(95 * 32, 7, 3.0f);
  std::copy(values.begin(), values.end(), mel.f32());
  const Tensor got = teacher->embed(mel, pool);
  EXPECT_EQ(got.shape(), (Shape{3, 96}));
  const auto expected = reference_embeddings(weights, {values.begin(), values.end()});
  double squares = 0;
  for (const double value : expected) squares += value * value;
  const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
  EXPECT_GT(rms, 0.05);  // it did not die on the way
  expect_close(got, expected.data(), expected.size(), 1e-5 * std::max(rms, 1.0));
}

TEST(SpeechEmbedding, BlocksAndThreadsChangeNoBit) {
  const auto teacher = load(random_weights(), true).value();
  ThreadPool one(1), three(3);
  const std::int64_t rows = 140;  // more than one block of embeddings, and of mel frames
  const auto pcm = test::test_sound(static_cast<std::size_t>(1280 * (rows - 1) + 12512));
  const Tensor mel = teacher->mel(pcm, one), whole = teacher->embed(mel, one);
  EXPECT_EQ(values_of(mel), values_of(teacher->mel(pcm, three)));
  EXPECT_EQ(values_of(whole), values_of(teacher->embed(mel, three)));
  ASSERT_EQ(whole.dim(0), rows);
  for (const std::int64_t row : {0, 127, 128, 139}) {
    Tensor window = Tensor::zeros({76, 32});
    std::copy_n(mel.f32() + row * 8 * 32, 76 * 32, window.f32());
    EXPECT_EQ(values_of(teacher->embed(window, one)), rows_of(whole, row, 1)) << row;
  }
}

TEST(SpeechEmbedding, FramesOfACropAreThoseOfTheRecording) {
  const auto teacher = load(random_weights(), false).value();
  ThreadPool pool(2);
  const auto pcm = test::test_sound(30 * 1280 + 100);
  const Tensor whole = teacher->features("sound", pcm, pool).value();
  ASSERT_EQ(whole.shape(), (Shape{31, 96}));
  EXPECT_EQ(teacher->frames(static_cast<std::int64_t>(pcm.size())), 31);
  EXPECT_EQ(values_of(teacher->features(pcm, 4 * 1280, 9 * 1280, pool)), rows_of(whole, 4, 9));
  EXPECT_EQ(values_of(teacher->features(pcm, 29 * 1280, 1281, pool)), rows_of(whole, 29, 2));
  // Where row j's window lies: its sample 7692 is the middle of its frame, so here it starts at sample 0.
  const Tensor unpadded = teacher->embed(teacher->mel(pcm, pool), pool);
  const std::int64_t count = unpadded.dim(0);
  EXPECT_EQ(values_of(teacher->features(pcm, 7692 - 640, count * 1280, pool)), values_of(unpadded));
  // Zeros lie outside.
  std::vector<float> padded(7 * 1280 + pcm.size());
  std::copy(pcm.begin(), pcm.end(), padded.begin() + 7 * 1280);
  EXPECT_EQ(rows_of(teacher->features("padded", padded, pool).value(), 7, 31), values_of(whole));
  const std::vector<float> silence(1280);
  const auto silent = values_of(teacher->features("silence", silence, pool).value());
  EXPECT_EQ(values_of(teacher->features(pcm, 1'000'000, 1280, pool)), silent);
  EXPECT_EQ(values_of(teacher->features(pcm, -1'000'000, 1280, pool)), silent);
}

TEST(SpeechEmbedding, ShortRecordings) {
  const auto teacher = load(random_weights(), true).value();
  ThreadPool pool;
  EXPECT_EQ(teacher->features("empty", {}, pool).value().shape(), (Shape{0, 96}));
  for (const std::size_t samples : {1, 1280, 1281}) {
    const auto features = teacher->features("short", test::test_sound(samples), pool).value();
    EXPECT_EQ(features.shape(), (Shape{samples > 1280 ? 2 : 1, 96}));
  }
}

TEST(SpeechEmbedding, SaysWhatIsWrong) {
  Weights weights = random_weights();
  weights.erase("conv07.weight");
  EXPECT_NE(load(weights, true).error().message.find("conv07.weight"), std::string::npos);
  weights = random_weights();
  weights["conv12.bias"] = {{48}, std::vector<float>(48)};
  const auto shape = load(weights, true).error();
  EXPECT_EQ(shape.code, ErrorCode::mismatch);
  EXPECT_NE(shape.message.find("\"conv12.bias\": expected shape [96], got [48]"), std::string::npos)
      << shape.message;
  weights = random_weights();
  std::fill(weights["mel.window"].values.begin(), weights["mel.window"].values.end(), 0.0f);
  EXPECT_NE(load(weights, true).error().message.find("zeros only"), std::string::npos);
  EXPECT_EQ(SpeechEmbedding::load("/nowhere/speech_embedding.safetensors").error().code, ErrorCode::io);

  const auto teacher = load(random_weights(), true).value();
  ThreadPool pool;
  auto pcm = test::test_sound(2000);
  pcm[1234] = std::nanf("");
  const auto bad = teacher->features("a/b.flac", pcm, pool);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "a/b.flac: expected finite samples, got nan at sample 1234");
  EXPECT_THROW(teacher->mel(std::span(pcm).first(511), pool), UsageError);
  EXPECT_THROW(teacher->embed(Tensor::zeros({75, 32}), pool), UsageError);
  EXPECT_THROW(teacher->features(pcm, 0, -1, pool), UsageError);
}

// With the published weights.

const std::string kFolder = std::string(TESSERA_SHARED_DIR) + "/models/speech_embedding";

std::vector<float> read_sound(const std::string& name) {
  auto reader = AudioReader::open(std::string(TESSERA_SHARED_DIR) + "/data/speech16/" + name).value();
  std::vector<float> sound, piece(65536);
  for (std::size_t got = 1; got > 0;) {
    got = reader.read(piece).value();
    sound.insert(sound.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
  }
  return sound;
}

TEST(SpeechEmbeddingReference, GivesThePublishedNumbers) {
  if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << kFolder << " is not there";
  const auto teacher = SpeechEmbedding::load(kFolder).value();
  const auto without_floor = SpeechEmbedding::load(kFolder, {.floor = false}).value();
  ThreadPool pool(2);
  const std::pair<std::string, std::string> clips[] = {
      {"libri_tc", "test_libri_tc/6880-216547-0000.flac"},
      {"so762", "test_so762/014200011.flac"},
      {"libri_other", "test_libri_other/3331-159605-0001.flac"}};
  for (const auto& [name, recording] : clips) {
    SCOPED_TRACE(name);
    const auto pcm = read_sound(recording);
    const auto reference = [&name = name](const std::string& kind) {
      return read_npy(kFolder + "/reference/" + name + kind + ".npy").value();
    };
    const Tensor mel = reference(".mel"), embeddings = reference(".emb"), plain = reference(".emb_nofloor");
    const auto size = [](const Tensor& x) { return static_cast<std::size_t>(x.size()); };
    const Tensor own = teacher->mel(pcm, pool);
    expect_close(own, mel.f32(), size(mel), 1e-4);
    expect_close(teacher->embed(mel, pool), embeddings.f32(), size(embeddings), 1e-4);
    expect_close(teacher->embed(own, pool), embeddings.f32(), size(embeddings), 5e-4);
    expect_close(without_floor->embed(without_floor->mel(pcm, pool), pool), plain.f32(), size(plain), 5e-4);
  }
}

// A burst changes the embeddings around it; the middle of that change is to be the frame in which the burst
// lies.
TEST(SpeechEmbeddingReference, FramesLieWhereTheSoundIs) {
  if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << kFolder << " is not there";
  const auto teacher = SpeechEmbedding::load(kFolder, {.floor = false}).value();
  ThreadPool pool(2);
  auto pcm = read_sound("test_libri_tc/6880-216547-0000.flac");
  const Tensor before = teacher->features("before", pcm, pool).value();
  double offset = 0;
  const std::size_t places[] = {20000, 32000, 45500, 60000, 71000};
  for (const std::size_t place : places) {
    auto changed = pcm;
    const auto burst = random_floats(160, place, 0.01f);
    for (std::size_t i = 0; i < burst.size(); ++i) changed[place + i] += burst[i];
    const Tensor after = teacher->features("after", changed, pool).value();
    double weight = 0, moment = 0;
    for (std::int64_t i = 0; i < after.size(); ++i) {
      const double change = static_cast<double>(after.f32()[i]) - before.f32()[i];
      weight += change * change;
      moment += change * change * (static_cast<double>(i / 96) + 0.5) * 1280;  // the middle of its frame
    }
    offset += (moment / weight - static_cast<double>(place) - 80) / std::size(places);
  }
  EXPECT_LT(std::abs(offset), 640) << "samples";
}

}  // namespace
}  // namespace tessera::train
