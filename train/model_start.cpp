#include "train/model_start.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/exact_math.h"

namespace tessera::train {
namespace {

using Kind = TesseraBlock::Kind;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

// Critical bands widen beyond about this frequency (the corner of the mel scale).
constexpr double kCorner = 700;
// What an error of a band's log gain weighs beside errors of the shape's lowest coefficients, whose mean
// square is 1.
constexpr double kGainWeight = 3;
constexpr int kLeastBand = 4;  // coefficients
// Of the strongest coefficient of a band: what none counts as weaker than, and where the recordings hold
// nothing.
constexpr double kFaintest = 1.0 / 4, kNothing = 1.0 / 16;

// Bands of equal width on the scale of equivalent rectangular bandwidths (Glasberg and Moore 1990), but not
// below kLeastBand coefficients: their widths.
std::vector<int> gain_bands(const ModelConfig& config) {
  const double nyquist = config.sample_rate_hz / 2.0;
  const double top = exact_log(1 + 0.00437 * nyquist);
  std::vector<int> widths;
  int begin = 0;
  for (int i = 1; i <= config.bands && begin < config.hop; ++i) {
    const double edge_hz = (exact_exp(top * i / config.bands) - 1) / 0.00437;
    int end = std::max(begin + kLeastBand, static_cast<int>(std::lround(edge_hz * config.hop / nyquist)));
    if (i == config.bands || end + kLeastBand > config.hop) end = config.hop;
    widths.push_back(end - begin);
    begin = end;
  }
  return widths;
}

// How much less a coefficient's error is heard than that of a low one's, both relative to their power.
double importance(const TesseraConfig& config, int coefficient) {
  const double frequency = (coefficient + 0.5) * config.sample_rate_hz / (2.0 * config.hop);
  return 1 / (1 + frequency / kCorner);
}

TesseraBlock conv(Kind kind, const std::string& name, int in, int out, int rows) {
  TesseraBlock block;
  block.kind = kind;
  block.name = name;
  block.in = in;
  block.out = out;
  block.kernel = block.stride = rows;
  return block;
}

TesseraBlock plain(Kind kind, int in, int out) {
  TesseraBlock block;
  block.kind = kind;
  block.in = in;
  block.out = out;
  return block;
}

TesseraBlock gains(Kind kind, int in, int out, const std::vector<int>& bands) {
  TesseraBlock block = plain(kind, in, out);
  block.bands = bands;
  return block;
}

// Periods from 2 to 19 ms (53 to 500 Hz), harmonics up to 1 kHz; a frame of 20 ms late.
TesseraBlock pitch_filter(const ModelConfig& config) {
  TesseraBlock block;
  block.kind = Kind::pitch_filter;
  block.pitch.hop = config.hop % 4 ? config.hop : config.hop / 4;
  block.pitch.shortest = config.sample_rate_hz / 500;
  block.pitch.smoothing = config.sample_rate_hz / 1000;
  block.pitch.longest = config.sample_rate_hz / 50 - block.pitch.smoothing;
  return block;
}

// Windows of 20 ms or a little less, magnitudes up to 1.5 kHz.
TesseraBlock spectral_smoother(const ModelConfig& config) {
  TesseraBlock block;
  block.kind = Kind::spectral_smoother;
  int& hop = block.smoother.hop = config.sample_rate_hz / 100;
  while (config.samples_per_frame() % hop) --hop;
  block.smoother.bins = 2 * hop * 1500 / config.sample_rate_hz;
  return block;
}

void add_residuals(std::vector<TesseraBlock>& blocks, const std::string& side,
                   const std::vector<int>& dilations, const ModelConfig& config) {
  for (std::size_t i = 0; i < dilations.size(); ++i) {
    TesseraBlock block;
    block.kind = Kind::residual;
    block.name = side + ".block" + std::to_string(i);
    block.in = block.out = config.channels;
    block.kernel = config.kernel;
    block.dilation = dilations[i];
    blocks.push_back(std::move(block));
  }
}

// Rows of the analysis with gain apart, `rows` of them side by side, weighted for the principal components.
struct Components {
  Vector mean, weight;  // [F]
  Matrix vectors;       // [F, F], columns from the largest variance down
};

Components principal_components(const Tensor& front, int rows, const TesseraConfig& config) {
  const std::int64_t channels = front.dim(2), width = rows * channels, count = front.size() / width;
  const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> x(
      front.f32(), count, width);
  Components result;
  result.weight = Vector::Constant(width, kGainWeight);
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < config.hop; ++k) result.weight[r * channels + k] = importance(config, k);
  }
  const Matrix values = x.cast<double>();
  result.mean = values.colwise().mean();
  // All rows of a frame have the same statistics; a transposed convolution has one bias for them.
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int r = 0; r < rows; ++r) sum += result.mean[r * channels + c];
    for (int r = 0; r < rows; ++r) result.mean[r * channels + c] = sum / rows;
  }
  const Matrix weighted = (values.rowwise() - result.mean.transpose()) * result.weight.asDiagonal();
  const Matrix covariance = weighted.transpose() * weighted / static_cast<double>(count);
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(covariance);
  result.vectors = solver.eigenvectors().rowwise().reverse();
  return result;
}

float* storage_of(const Parameters& parameters, const std::string& name) {
  Tensor tensor = parameters.find(name);
  if (!tensor.defined()) fail("start_as_transform_codec", "a parameter " + name, "none");
  std::fill_n(tensor.f32(), tensor.size(), 0.0f);
  return tensor.f32();
}

// Channel i of the result is channel i of the input, for the first `count`.
void set_identity(const Parameters& parameters, const std::string& name, int out, int count) {
  float* weight = storage_of(parameters, name + ".weight");  // [1, in, out]
  storage_of(parameters, name + ".bias");
  for (int i = 0; i < count; ++i) weight[i * out + i] = 1;
}

// Root mean squares of the coefficients, [hop].
std::vector<double> strengths(const Tensor& coefficients, int hop) {
  const std::int64_t rows = coefficients.size() / hop;
  std::vector<double> power(static_cast<std::size_t>(hop));
  for (std::int64_t i = 0; i < coefficients.size(); ++i) {
    const double value = coefficients.f32()[i];
    power[static_cast<std::size_t>(i % hop)] += value * value;
  }
  for (double& value : power) value = std::sqrt(value / static_cast<double>(rows));
  return power;
}

// Scales for equal power, weighted, but for coefficients that are faint beside others of their band; and no
// basis for the top of the spectrum where the recordings hold nothing. Recordings that have been through a
// lossy coder hold next to nothing there, others do, and would fill the latents and the gain of the band.
void fit_tables(TransformTables& tables, const TesseraConfig& config, const std::vector<double>& strengths) {
  int first = 0, edge = 0;
  double strongest = 0;
  for (const int width : config.encoder[1].bands) {
    const auto begin = strengths.begin() + first;
    // A band far below the one before it may be empty as a whole.
    strongest = std::max(*std::max_element(begin, begin + width), kFaintest * strongest);
    for (int k = first; k < first + width; ++k) {
      const double strength = strengths[static_cast<std::size_t>(k)];
      if (strength >= kNothing * strongest) edge = k + 1;
      tables.scale.f32()[k] =
          static_cast<float>(importance(config, k) / (std::max(strength, kFaintest * strongest) + 1e-4));
    }
    first += width;
  }
  std::fill(tables.basis.f32() + edge * config.window, tables.basis.f32() + tables.basis.size(), 0.0f);
}

}  // namespace

Result<TesseraConfig> new_model(const ModelConfig& config) {
  const auto usage = [](const std::string& message) { return Error{ErrorCode::usage, "model: " + message}; };
  const std::vector<int> bands = gain_bands(config);
  const int coefficients = config.hop + static_cast<int>(bands.size());
  if (config.latent > std::min(config.channels, config.rows * coefficients)) {
    return usage("expected a latent of at most the channels " + std::to_string(config.channels) +
                 " and the coefficients of a frame, got " + std::to_string(config.latent));
  }
  TesseraConfig model;
  model.sample_rate_hz = config.sample_rate_hz;
  model.hop = config.hop;
  model.window = 2 * config.hop;
  model.pre_skip = config.hop;
  model.latent = config.latent;
  model.codebooks = config.codebooks;
  model.codebook_size = config.codebook_size;
  if (config.quantizer == ModelConfig::Quantizer::factorized) {
    model.code_dimension = config.code_dimension;
  } else {
    model.search_paths = config.search_paths;
  }
  model.encoder.push_back(plain(Kind::analysis, 1, config.hop));
  model.encoder.push_back(gains(Kind::split_gain, config.hop, coefficients, bands));
  model.encoder.push_back(conv(Kind::conv, "encoder.in", coefficients, config.channels, config.rows));
  add_residuals(model.encoder, "encoder", config.encoder, config);
  model.encoder.push_back(conv(Kind::conv, "encoder.out", config.channels, config.latent, 1));
  model.decoder.push_back(conv(Kind::conv, "decoder.in", config.latent, config.channels, 1));
  add_residuals(model.decoder, "decoder", config.decoder, config);
  model.decoder.push_back(
      conv(Kind::conv_transpose, "decoder.out", config.channels, coefficients, config.rows));
  model.decoder.push_back(gains(Kind::join_gain, coefficients, config.hop, bands));
  model.decoder.push_back(plain(Kind::synthesis, config.hop, 1));
  if (config.pitch_filter) {
    model.decoder.push_back(pitch_filter(config));
    model.pre_skip += PitchFilter(model.decoder.back().pitch).delay();
  }
  if (config.spectral_smoother) {
    model.decoder.push_back(spectral_smoother(config));
    model.pre_skip += SpectralSmoother(model.decoder.back().smoother).delay();
  }
  return model;
}

void start_as_transform_codec(CodecModel& model, Parameters& parameters, const Tensor& pcm, Tape& tape) {
  const Tape::Pause pause(tape);
  const TesseraConfig& config = model.config();
  TransformTables tables = mdct_tables(config);
  model.set_tables(tables);
  fit_tables(tables, config, strengths(model.coefficients(tape, pcm), config.hop));
  model.set_tables(tables);
  const TesseraBlock& in = config.encoder[2];
  const int channels = in.out, rows = in.stride, width = rows * in.in;
  const Tensor front = model.front(tape, pcm);
  const Components components = principal_components(front, rows, config);
  const int kept = std::min(channels, width);

  float* weight = storage_of(parameters, "encoder.in.weight");  // [rows, in, channels] = [F, channels]
  float* bias = storage_of(parameters, "encoder.in.bias");
  for (int i = 0; i < kept; ++i) {
    double offset = 0;
    for (int f = 0; f < width; ++f) {
      const double w = components.vectors(f, i) * components.weight[f];
      weight[f * channels + i] = static_cast<float>(w);
      offset += w * components.mean[f];
    }
    bias[i] = static_cast<float>(-offset);
  }
  set_identity(parameters, "encoder.out", config.latent, std::min(config.latent, kept));
  set_identity(parameters, "decoder.in", channels, std::min(config.latent, kept));

  float* inverse = storage_of(parameters, "decoder.out.weight");  // [rows, channels, in]
  float* means = storage_of(parameters, "decoder.out.bias");      // [in]
  for (int f = 0; f < width; ++f) {
    const int row = f / in.in, c = f % in.in;
    means[c] = static_cast<float>(components.mean[c]);
    for (int i = 0; i < kept; ++i) {
      inverse[(row * channels + i) * in.in + c] =
          static_cast<float>(components.vectors(f, i) / components.weight[f]);
    }
  }
}

void start_codebooks(const CodecModel& model, QuantizerLearner& quantizer, const Tensor& pcm, Tape& tape) {
  const Tape::Pause pause(tape);
  const Tensor latents = model.encode(tape, pcm);
  quantizer.initialize(latents.f32(), static_cast<int>(latents.dim(0) * latents.dim(1)), tape.pool());
}

}  // namespace tessera::train
