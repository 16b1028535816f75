// The network on the tape against the codec that streams it: one forward, the same bits.
#include "train/codec_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "codec/codec.h"
#include "codec/model.h"
#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/codec/small_models.h"
#include "tests/random.h"
#include "tests/train/run_support.h"
#include "train/model_file.h"
#include "train/model_start.h"
#include "train/quantizers/residual_vq_learner.h"

namespace tessera::train {
namespace {

using test::random_floats;

// A small model's weights file on disk.
class CodecModelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = folder_ / "model.safetensors";
    std::ofstream(path_, std::ios::binary) << test::small_weights(GetParam());
  }

  test::RunFolder folder_{"codec_model"};
  std::string path_;
};

Tensor sound(std::int64_t clips, std::int64_t samples) {
  Tensor pcm = Tensor::zeros({clips, samples});
  for (std::int64_t i = 0; i < clips; ++i) {
    const std::vector<float> one =
        test::test_sound(static_cast<std::size_t>(samples), static_cast<std::uint64_t>(i) + 1);
    std::copy(one.begin(), one.end(), pcm.f32() + i * samples);
  }
  return pcm;
}

// What the streaming layers make of rows [T, C]: one stream, one push.
std::vector<float> stream(const Layer& layer, const float* x, int rows) {
  std::vector<std::byte> state(layer.state_bytes());
  layer.init_state(state.data());
  Workspace workspace(
      layer.workspace_bytes(1, rows) +
      2 * Workspace::padded(static_cast<std::size_t>(rows * layer.in_channels()) * sizeof(float)));
  ThreadPool pool;
  StepContext context{workspace, pool};
  Tensor in = workspace.tensor(Workspace::Side::high, {rows, layer.in_channels()});
  std::copy_n(x, in.size(), in.f32());
  const bool end = false;
  std::byte* const block = state.data();
  const Sequences y = layer.step({in, {&rows, 1}, {&end, 1}}, States({&block, 1}), context);
  return {y.rows.f32(), y.rows.f32() + y.rows.size()};
}

TEST_P(CodecModelTest, GivesTheBitsOfTheStream) {
  const ModelFile file = read_model_file(path_).value();
  Parameters parameters;
  const CodecModel model(file.config, file.tables, parameters);
  ASSERT_TRUE(parameters.set_values(file.weights));
  const auto codec = Codec::load(path_).value();

  ThreadPool pool(2);
  Tape tape(pool);
  const int samples = 30 * model.samples_per_frame();
  const Tensor pcm = sound(2, samples);
  const Tensor latents = model.encode(tape, pcm);
  const Tensor decoded = model.decode(tape, latents);
  ASSERT_EQ(latents.shape(), (Shape{2, 30, file.config.latent}));
  ASSERT_EQ(decoded.shape(), (Shape{2, samples}));
  for (std::int64_t i = 0; i < 2; ++i) {
    const std::int64_t size = 30 * file.config.latent;
    const std::vector<float> streamed = stream(*codec->model().encoder, pcm.f32() + i * samples, samples);
    EXPECT_TRUE(std::equal(streamed.begin(), streamed.end(), latents.f32() + i * size,
                           latents.f32() + (i + 1) * size));
    const std::vector<float> played = stream(*codec->model().decoder, latents.f32() + i * size, 30);
    EXPECT_TRUE(std::equal(played.begin(), played.end(), decoded.f32() + i * samples,
                           decoded.f32() + (i + 1) * samples));
  }
}

TEST_P(CodecModelTest, GradientsReachEveryWeight) {
  const ModelFile file = read_model_file(path_).value();
  Parameters parameters;
  CodecModel model(file.config, file.tables, parameters);
  ASSERT_TRUE(parameters.set_values(file.weights));
  const Tensor pcm = sound(2, 12 * model.samples_per_frame());
  const auto gradients = [&](int threads, bool recompute) {
    ThreadPool pool(threads);
    Tape tape(pool);
    model.set_recompute(recompute);
    const Tensor decoded = model.decode(tape, model.encode(tape, pcm));
    tape.backward(ops::mean(tape, ops::square(tape, ops::sub(tape, decoded, pcm))));
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : parameters.items()) {
      const Tensor g = gradient_of(parameter.tensor);
      EXPECT_TRUE(g.defined()) << parameter.name;
      if (g.defined()) all.emplace_back(g.f32(), g.f32() + g.size());
    }
    parameters.clear_gradients();
    return all;
  };
  const auto one = gradients(1, false);
  for (const auto& gradient : one) {
    EXPECT_TRUE(std::ranges::any_of(gradient, [](float v) { return v != 0; }));
  }
  EXPECT_EQ(gradients(3, false), one);
  EXPECT_EQ(gradients(2, true), one);
}

TEST_P(CodecModelTest, AFileComesBackAsItWas) {
  const ModelFile file = read_model_file(path_).value();
  Parameters parameters;
  const CodecModel model(file.config, file.tables, parameters);
  ASSERT_TRUE(parameters.set_values(file.weights));
  QuantizerLearnerOptions options;
  options.codebooks = file.config.codebooks;
  options.codebook_size = file.config.codebook_size;
  options.dimension = file.config.latent;
  ResidualVqLearner quantizer(options, parameters);
  ASSERT_TRUE(quantizer.set_codebooks(file.codebooks));
  const std::string copy = folder_ / "copy.safetensors";
  ASSERT_TRUE(write_model_file(copy, model, parameters, quantizer, DType::f32));
  EXPECT_EQ(Codec::load(copy).value()->info().weights_hash, Codec::load(path_).value()->info().weights_hash);

  ASSERT_TRUE(write_model_file(copy, model, parameters, quantizer, DType::bf16));
  const auto rounded = Codec::load(copy).value();
  EXPECT_EQ(rounded->info().parameters, Codec::load(path_).value()->info().parameters);
}

INSTANTIATE_TEST_SUITE_P(Models, CodecModelTest, testing::Values("tessera", "tessera_gain"));

TEST(ModelFile, RefusesWhatIsNoModel) {
  test::RunFolder folder("model_file");
  const std::string path = folder / "mimi.safetensors";
  std::ofstream(path, std::ios::binary) << test::small_weights("mimi");
  const auto file = read_model_file(path);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("tessera family"), std::string::npos) << file.error().message;
  EXPECT_FALSE(read_model_file(folder / "none.safetensors"));
}

ModelConfig small_config(int rows) {
  ModelConfig config;
  config.hop = 32;
  config.rows = rows;
  config.bands = 3;
  config.channels = 80;
  config.latent = 24;
  config.encoder = {1, 2};
  config.decoder = {1, 2};
  config.codebooks = 4;
  config.codebook_size = 16;
  return config;
}

// With as many latents as coefficients and the branches silent, the start is the transform alone: it returns
// its input.
TEST(ModelStart, IsATransformCodec) {
  for (const int rows : {1, 2}) {
    ModelConfig config = small_config(rows);
    config.latent = config.rows * (config.hop + config.bands);
    config.pitch_filter = config.spectral_smoother = false;
    const TesseraConfig blocks = new_model(config).value();
    Parameters parameters(3);
    CodecModel model(blocks, mdct_tables(blocks), parameters);
    ThreadPool pool(2);
    Tape tape(pool);
    const Tensor pcm = sound(4, 200 * config.samples_per_frame());
    start_as_transform_codec(model, parameters, pcm, tape);
    for (const Parameter& parameter : parameters.items()) {
      if (parameter.name.find("conv2.weight") == std::string::npos) continue;
      Tensor branch = parameter.tensor;
      std::fill_n(branch.f32(), branch.size(), 0.0f);
    }
    const Tensor decoded = model.decode(tape, model.encode(tape, pcm));
    const std::int64_t skip = blocks.pre_skip, length = pcm.dim(1) - skip;
    double error = 0, energy = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t t = 0; t < length; ++t) {
        const double x = pcm.f32()[i * pcm.dim(1) + t], y = decoded.f32()[i * pcm.dim(1) + t + skip];
        error += (x - y) * (x - y);
        energy += x * x;
      }
    }
    EXPECT_LT(error, 1e-6 * energy) << rows << " rows";
  }
}

// Sound with next to nothing at multiples of an eighth of the rate: what is not there must not be blown up,
// and not coded at the top.
TEST(ModelStart, ScalesOfABandStayClose) {
  const TesseraConfig blocks = new_model(ModelConfig()).value();
  Parameters parameters(3);
  CodecModel model(blocks, mdct_tables(blocks), parameters);
  ThreadPool pool(2);
  Tape tape(pool);
  Tensor pcm = Tensor::zeros({1, 200 * blocks.hop});
  std::vector<float> noise = test::random_floats(static_cast<std::size_t>(pcm.size()) + 64, 1);
  for (int pass = 0; pass < 4; ++pass) {  // means of eight samples
    for (std::size_t i = 0; i + 8 < noise.size(); ++i) {
      noise[i] = std::accumulate(noise.begin() + static_cast<std::ptrdiff_t>(i),
                                 noise.begin() + static_cast<std::ptrdiff_t>(i) + 8, 0.0f) /
                 8;
    }
  }
  std::copy_n(noise.begin(), pcm.size(), pcm.f32());
  start_as_transform_codec(model, parameters, pcm, tape);
  const float* scale = model.tables().scale.f32();
  double widest = 0;
  int first = 0;
  for (const int width : blocks.encoder[1].bands) {
    const auto [low, high] = std::minmax_element(scale + first, scale + first + width);
    const double ratio = static_cast<double>(*high) / *low;
    EXPECT_LT(ratio, 5) << "from coefficient " << first;  // four, and what a higher one counts less
    widest = std::max(widest, ratio);
    first += width;
  }
  EXPECT_EQ(first, blocks.hop);
  EXPECT_GT(widest, 3);
}

// Recordings that end at 5 kHz, as a lossy coder leaves them, with a faint rest above: whole bands are empty.
TEST(ModelStart, CodesNothingAboveTheEdgeOfItsRecordings) {
  const TesseraConfig blocks = new_model(ModelConfig()).value();
  Parameters parameters(3);
  CodecModel model(blocks, mdct_tables(blocks), parameters);
  ThreadPool pool(2);
  Tape tape(pool);
  constexpr int kReach = 100;
  Tensor pcm = Tensor::zeros({1, 200 * blocks.hop});
  const std::vector<float> noise = test::random_floats(static_cast<std::size_t>(pcm.size()) + 2 * kReach, 1);
  for (std::int64_t n = 0; n < pcm.size(); ++n) {
    double sum = 1e-3 * noise[static_cast<std::size_t>(n)];
    for (int i = -kReach; i <= kReach; ++i) {
      const double turn = M_PI * i, cutoff = 5000.0 / 8000.0;
      const double sinc = i == 0 ? cutoff : std::sin(turn * cutoff) / turn;
      sum += sinc * (0.5 + 0.5 * std::cos(turn / (kReach + 1))) *
             noise[static_cast<std::size_t>(n + i + kReach)];
    }
    pcm.f32()[n] = static_cast<float>(sum);
  }
  start_as_transform_codec(model, parameters, pcm, tape);
  for (int k = 0; k < blocks.hop; ++k) {
    const float* row = model.tables().basis.f32() + k * blocks.window;
    const bool coded = std::any_of(row, row + blocks.window, [](float value) { return value != 0; });
    const double frequency = (k + 0.5) * 25;
    if (std::abs(frequency - 5000) < 200) continue;
    EXPECT_EQ(coded, frequency < 5000) << frequency << " Hz";
  }
}

// At every rate: 20 ms late at most, and 30, in whole parts of a frame.
TEST(ModelStart, PutsTheFiltersLast) {
  for (const int rate_hz : {8000, 16000, 24000, 44100, 48000}) {
    ModelConfig config;
    config.sample_rate_hz = rate_hz;
    config.hop = rate_hz / 50;
    const TesseraConfig with = new_model(config).value();
    config.pitch_filter = config.spectral_smoother = false;
    const TesseraConfig without = new_model(config).value();
    ASSERT_EQ(with.decoder.size(), without.decoder.size() + 2);
    const TesseraBlock &pitch = with.decoder.end()[-2], &smoother = with.decoder.back();
    ASSERT_EQ(pitch.kind, TesseraBlock::Kind::pitch_filter);
    ASSERT_EQ(smoother.kind, TesseraBlock::Kind::spectral_smoother);
    const int delays[] = {PitchFilter(pitch.pitch).delay(), SpectralSmoother(smoother.smoother).delay()};
    EXPECT_EQ(with.pre_skip, without.pre_skip + delays[0] + delays[1]);
    EXPECT_LE(delays[0], config.hop);
    EXPECT_LE(delays[1], config.hop * 3 / 2);
    for (const TesseraBlock& block : {pitch, smoother}) {
      EXPECT_EQ(config.samples_per_frame() % block.sample_hop(), 0);
    }
    EXPECT_GE(smoother.smoother.hop, rate_hz / 200);
    EXPECT_NEAR(smoother.smoother.bins, 30, 1);
  }
}

TEST(ModelStart, CodebooksCarryTheSignal) {
  const ModelConfig config = small_config(1);
  const TesseraConfig blocks = new_model(config).value();
  Parameters parameters(3);
  CodecModel model(blocks, mdct_tables(blocks), parameters);
  ThreadPool pool(2);
  Tape tape(pool);
  const Tensor pcm = sound(4, 200 * config.samples_per_frame());
  start_as_transform_codec(model, parameters, pcm, tape);
  QuantizerLearnerOptions options;
  options.codebooks = config.codebooks;
  options.codebook_size = config.codebook_size;
  options.dimension = config.latent;
  ResidualVqLearner quantizer(options, parameters);
  start_codebooks(model, quantizer, pcm, tape);
  const Tensor latents = model.encode(tape, pcm);
  double last = 1e30;
  for (const int n : {1, 2, 4}) {
    const std::vector<int> active(4, n);
    const Quantized quantized = quantizer.forward(tape, latents, active, /*collect=*/false);
    double error = 0;
    for (std::int64_t i = 0; i < latents.size(); ++i) {
      error += std::pow(latents.f32()[i] - quantized.latents.f32()[i], 2.0);
    }
    EXPECT_LT(error, 0.9 * last) << n;
    last = error;
  }
}

TEST(ModelStart, RefusesSizesThatDoNotFit) {
  ModelConfig config = small_config(1);
  config.latent = 100;
  EXPECT_FALSE(new_model(config));
}

}  // namespace
}  // namespace tessera::train
