#include "train/config_options.h"

#include <utility>

namespace tessera::train {

DatasetOptions dataset_options(const TrainConfig& config, const std::vector<std::string>& sources,
                               const std::string& cache) {
  DatasetOptions options;
  options.sources.sources = sources;
  options.sources.exclude = config.data.exclude;
  options.sample_rate_hz = config.model.sample_rate_hz;
  options.cache_folder = config.data.cache.empty() ? cache : config.data.cache;
  options.memory_limit_bytes = std::int64_t{config.data.memory_mib} << 20;
  options.refused_limit = config.data.refused_limit;
  options.threads = config.run.threads;
  return options;
}

CropOptions crop_options(const TrainConfig& config) {
  const DataConfig& data = config.data;
  CropOptions options;
  options.seed = static_cast<std::uint64_t>(config.run.seed);
  options.batch = data.batch;
  options.length = crop_samples(config);
  options.gain_min_db = data.gain_db[0];
  options.gain_max_db = data.gain_db[1];
  options.flip_polarity = data.flip_polarity;
  if (data.noise_db > -200) options.noise_dbfs = data.noise_db;
  options.quiet_dbfs = data.skip_silence_db;
  options.keep_quiet = data.quiet_fraction;
  options.mix_probability = data.mix_fraction;
  options.mix_min_db = data.mix_db[0];
  options.mix_max_db = data.mix_db[1];
  return options;
}

AdamWOptions adamw_options(const OptimizerConfig& config) {
  AdamWOptions options;
  options.beta1 = config.betas[0];
  options.beta2 = config.betas[1];
  options.epsilon = config.epsilon;
  options.weight_decay = config.weight_decay;
  return options;
}

AdamWOptions adamw_options(const ModelOptimizerConfig& config) {
  AdamWOptions options = adamw_options(static_cast<const OptimizerConfig&>(config));
  ParameterGroup encoder;
  encoder.prefix = "encoder.";
  encoder.learning_rate = config.encoder_factor;
  options.groups.push_back(std::move(encoder));
  return options;
}

Schedule schedule_of(const OptimizerConfig& config, std::int64_t steps) {
  Schedule schedule;
  schedule.shape = config.schedule;
  schedule.peak = config.learning_rate;
  schedule.floor = config.floor;
  schedule.warmup_steps = config.warmup_steps;
  schedule.steps = steps;
  return schedule;
}

QuantizerLearnerOptions quantizer_learner_options(const TrainConfig& config) {
  QuantizerLearnerOptions options;
  options.codebooks = config.model.codebooks;
  options.codebook_size = config.model.codebook_size;
  options.dimension = config.model.latent;
  options.search_paths = config.model.search_paths;
  options.codebook_gradient = config.quantizer.codebook_gradient;
  options.decay = static_cast<float>(config.quantizer.decay);
  options.dead_below = static_cast<float>(config.quantizer.dead_below);
  options.seed = static_cast<std::uint64_t>(config.run.seed);
  return options;
}

DropoutOptions dropout_options(const QuantizerConfig& config) {
  DropoutOptions options;
  options.all = static_cast<float>(config.keep_all);
  options.choices = config.choices;
  return options;
}

LogMelLossOptions codec_log_mel(LogMelLossOptions options) {
  options.normalized = true;
  options.unit_area = false;
  options.floor = 1e-4f;
  return options;
}

LogMelLossOptions log_mel_loss_options(const TrainConfig& config) {
  LogMelLossOptions options;
  options.sample_rate_hz = config.model.sample_rate_hz;
  options.scales = log_mel_scales(config.losses.mel_windows, config.model.sample_rate_hz);
  return codec_log_mel(options);
}

LogMelLossOptions envelope_loss_options(const TrainConfig& config) {
  LogMelLossOptions options;
  options.sample_rate_hz = config.model.sample_rate_hz;
  options.scales = {{512, 20}, {1024, 20}};
  options.kind = SpectrumKind::power;
  options = codec_log_mel(options);
  options.floor = 1e-6f;
  return options;
}

StftLossOptions stft_loss_options(const LossConfig& config) {
  StftLossOptions options;
  options.windows = config.mel_windows;
  return options;
}

std::int64_t first_step_of_discriminators(const TrainConfig& config) {
  return std::max<std::int64_t>(config.discriminators.start_step - config.discriminators.lead_steps, 0);
}

StftDiscriminatorConfig stft_discriminator_config(const DiscriminatorConfig& config) {
  StftDiscriminatorConfig result;
  result.windows = config.stft;
  result.channels = config.channels;
  result.bands = config.bands;
  result.compressed = config.compressed;
  return result;
}

PeriodDiscriminatorConfig period_discriminator_config(const DiscriminatorConfig& config) {
  PeriodDiscriminatorConfig result;
  result.periods = config.periods;
  result.channels = config.channels;
  return result;
}

}  // namespace tessera::train
