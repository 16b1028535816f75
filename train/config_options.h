// A configuration as the options of the parts that it configures.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"
#include "train/data/crops.h"
#include "train/data/dataset.h"
#include "train/discriminators/period_discriminator.h"
#include "train/discriminators/stft_discriminator.h"
#include "train/losses/spectral_loss.h"
#include "train/optimizer.h"
#include "train/quantizers/quantizer_learner.h"
#include "train/schedule.h"

namespace tessera::train {

/// Of `sources` (data.train or data.heldout); `cache` where data.cache is empty.
DatasetOptions dataset_options(const TrainConfig& config, const std::vector<std::string>& sources,
                               const std::string& cache);
/// Crops of crop_samples(config), from anywhere in a recording (align 1).
CropOptions crop_options(const TrainConfig& config);
/// The parameters named `encoder.` learn at encoder_factor.
AdamWOptions adamw_options(const ModelOptimizerConfig& config);
AdamWOptions adamw_options(const OptimizerConfig& config);
Schedule schedule_of(const OptimizerConfig& config, std::int64_t steps);
QuantizerLearnerOptions quantizer_learner_options(const TrainConfig& config);
DropoutOptions dropout_options(const QuantizerConfig& config);
/// As training and evaluation compare sounds: on a scale on which the floor is a noise of 80 dB below full
/// scale, more or less, at every window.
LogMelLossOptions codec_log_mel(LogMelLossOptions options);
LogMelLossOptions log_mel_loss_options(const TrainConfig& config);
/// Bands so wide that only their levels are left of the spectrum.
LogMelLossOptions envelope_loss_options(const TrainConfig& config);
StftLossOptions stft_loss_options(const LossConfig& config);
/// The first step of the discriminators: they learn before the codec learns from them.
std::int64_t first_step_of_discriminators(const TrainConfig& config);
StftDiscriminatorConfig stft_discriminator_config(const DiscriminatorConfig& config);
PeriodDiscriminatorConfig period_discriminator_config(const DiscriminatorConfig& config);

}  // namespace tessera::train
