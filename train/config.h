// The configuration of a training run: a JSON file, // comments allowed, every key optional but data.train.
// Keys, ranges and help texts are declared once, in config_fields.cpp; the defaults are the values below.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/tape.h"
#include "core/result.h"
#include "train/discriminators/adversarial.h"
#include "train/schedule.h"

namespace tessera::train {

struct ModelConfig {
  enum class Quantizer : std::uint8_t { residual, factorized };
  enum class Start : std::uint8_t { transform, random };
  int sample_rate_hz = 16000;
  int hop = 320;
  int rows = 1;
  int bands = 20;
  int channels = 512;
  int latent = 128;
  std::vector<int> encoder = {1, 2, 4};
  std::vector<int> decoder = {1, 2, 4, 1, 2};
  bool pitch_filter = true;
  bool spectral_smoother = true;
  int kernel = 3;
  Quantizer quantizer = Quantizer::residual;
  int codebooks = 16;
  int codebook_size = 1024;
  int code_dimension = 8;
  int search_paths = 4;
  Start start = Start::transform;
  std::string from = {};

  int samples_per_frame() const { return hop * rows; }
};

struct DataConfig {
  std::vector<std::string> train = {};
  std::vector<std::string> heldout = {};
  std::vector<std::string> exclude = {};
  std::string cache = {};
  double seconds = 1.28;
  int batch = 16;
  std::array<double, 2> gain_db = {-12.0, 3.0};
  bool flip_polarity = true;
  double skip_silence_db = -60.0;
  double quiet_fraction = 0.05;
  double noise_db = -200.0;
  double mix_fraction = 0.0;
  std::array<double, 2> mix_db = {-12.0, 0.0};
  int memory_mib = 2048;
  double refused_limit = 0.01;
};

struct LossConfig {
  double normalized_error = 0.1;
  double pre_emphasized = 0.1;
  double log_mel = 3.0;
  std::int64_t log_mel_start = 0;
  std::vector<int> mel_windows = {64, 128, 256, 512, 1024, 2048};
  double envelope = 0.0;
  double stft = 0.0;
  double commitment = 1.0;
  double adversarial = 0.05;
  double feature_matching = 0.3;
  double distillation = 0.0;
  bool balancer = false;
};

struct QuantizerConfig {
  double decay = 0.99;
  double dead_below = 0.4;
  bool codebook_gradient = false;
  double keep_all = 0.2;
  std::vector<int> choices = {};
};

struct DiscriminatorConfig {
  std::vector<int> stft = {512, 256, 128};
  std::vector<int> periods = {};
  int channels = 12;
  std::vector<double> bands = {1.0};
  bool compressed = true;
  AdversarialLoss loss = AdversarialLoss::hinge;
  double seconds = 0.4;
  std::int64_t start_step = 3000;
  std::int64_t lead_steps = 100;
  int every = 1;
};

struct TeacherConfig {
  enum class Kind : std::uint8_t { none, speech_embedding, features };
  Kind kind = Kind::none;
  std::string path = {};
  double frame_rate_hz = 50.0;
};

struct OptimizerConfig {
  double learning_rate = 1e-3;
  std::array<double, 2> betas = {0.9, 0.99};
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip = 1.0;
  std::int64_t warmup_steps = 100;
  ScheduleShape schedule = ScheduleShape::cosine;
  double floor = 0.03;
};

struct ModelOptimizerConfig : OptimizerConfig {
  double encoder_factor = 1.0;
  double ema = 0.999;
};

struct DiscriminatorOptimizerConfig : OptimizerConfig {
  DiscriminatorOptimizerConfig() {
    betas = {0.8, 0.99};
    floor = 0.2;
  }
};

struct RunConfig {
  std::int64_t steps = 6000;
  std::int64_t seed = 1;
  int threads = 0;
  Precision precision = Precision::f32;
  bool recompute = false;
  int log_every = 20;
  int examples_every = 1000;
  int checkpoint_every = 500;
  int keep = 3;
  std::int64_t keep_every = 0;
};

struct TrainConfig {
  ModelConfig model = {};
  DataConfig data = {};
  LossConfig losses = {};
  QuantizerConfig quantizer = {};
  DiscriminatorConfig discriminators = {};
  TeacherConfig teacher = {};
  ModelOptimizerConfig optimizer = {};
  DiscriminatorOptimizerConfig discriminator_optimizer = {};
  RunConfig run = {};
};

/// Reads a configuration. Errors: io; usage, with file, section and key: text that is not JSON, an unknown
/// key or section (names the nearest), a value of the wrong type or out of range, values that do not fit one
/// another.
Result<TrainConfig> read_config(const std::string& path);
/// The same of `text`; `name` stands for the file in errors.
Result<TrainConfig> parse_config(std::string_view text, const std::string& name);

/// Samples of a crop: data.seconds, rounded to whole frames.
std::int64_t crop_samples(const TrainConfig& config);

/// All keys with their values, as parse_config reads them.
std::string to_json(const TrainConfig& config);
/// A complete configuration of defaults, each key with its help text as a comment.
std::string default_config();
/// A table of all keys: default, range, help text.
std::string config_help();

}  // namespace tessera::train
