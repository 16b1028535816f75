#include "train/config_check.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "train/config_options.h"

namespace tessera::train {
namespace {

bool rises(const std::array<double, 2>& pair) {
  return pair[0] <= pair[1];
}

std::optional<std::string> in_model(const ModelConfig& model) {
  if (model.quantizer == ModelConfig::Quantizer::factorized && model.code_dimension > model.latent) {
    return "model: code_dimension: expected at most latent (" + std::to_string(model.latent) + "), got " +
           std::to_string(model.code_dimension);
  }
  if (model.latent > std::min(model.channels, model.rows * model.hop)) {
    return "model: latent: expected at most channels (" + std::to_string(model.channels) +
           ") and rows x hop (" + std::to_string(model.rows * model.hop) + "), got " +
           std::to_string(model.latent);
  }
  return std::nullopt;
}

std::optional<std::string> in_data(const DataConfig& data) {
  if (data.train.empty()) return "data: train: expected at least one folder or recording, got none";
  if (!rises(data.gain_db)) return "data: gain_db: expected the lower gain first";
  if (!rises(data.mix_db)) return "data: mix_db: expected the lower level first";
  return std::nullopt;
}

std::optional<std::string> in_losses(const TrainConfig& config) {
  const LossConfig& losses = config.losses;
  if (losses.envelope > 0) {
    const int window = envelope_loss_options(config).scales.back().window;
    if (crop_samples(config) <= window / 2) {
      return "data: seconds: expected crops of more than " + std::to_string(window / 2) +
             " samples for losses.envelope above 0, got " + std::to_string(crop_samples(config)) + " samples";
    }
  }
  if (losses.log_mel <= 0 && losses.stft <= 0) return std::nullopt;
  if (losses.mel_windows.empty()) {
    return "losses: mel_windows: expected at least one for log_mel or stft above 0, got none";
  }
  for (const int window : losses.mel_windows) {
    if (window % 2 != 0) return "losses: mel_windows: expected even lengths, got " + std::to_string(window);
  }
  // Frames are centred and reflect the sound at its ends.
  const int longest = *std::ranges::max_element(losses.mel_windows);
  if (crop_samples(config) <= longest / 2) {
    return "data: seconds: expected crops of more than half the longest of losses.mel_windows (" +
           std::to_string(longest) + " samples), got " + std::to_string(crop_samples(config)) + " samples";
  }
  return std::nullopt;
}

std::optional<std::string> in_discriminators(const TrainConfig& config) {
  const DiscriminatorConfig& some = config.discriminators;
  for (const int window : some.stft) {
    if (!std::has_single_bit(static_cast<unsigned>(window))) {
      return "discriminators: stft: expected powers of two, got " + std::to_string(window);
    }
  }
  if (some.bands.empty() || some.bands.front() <= 0 ||
      std::ranges::adjacent_find(some.bands, std::greater_equal()) != some.bands.end()) {
    return "discriminators: bands: expected edges that rise";
  }
  if ((config.losses.adversarial > 0 || config.losses.feature_matching > 0) && some.stft.empty() &&
      some.periods.empty()) {
    return "discriminators: expected stft or periods for losses.adversarial and losses.feature_matching "
           "above 0, got neither";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> contradiction(const TrainConfig& config) {
  if (auto problem = in_model(config.model)) return problem;
  if (auto problem = in_data(config.data)) return problem;
  if (auto problem = in_discriminators(config)) return problem;
  if (auto problem = in_losses(config)) return problem;
  for (const int choice : config.quantizer.choices) {
    if (choice > config.model.codebooks) {
      return "quantizer: choices: expected at most model.codebooks (" +
             std::to_string(config.model.codebooks) + "), got " + std::to_string(choice);
    }
  }
  const bool teacher = config.teacher.kind != TeacherConfig::Kind::none;
  if (config.losses.distillation > 0 && !teacher) {
    return "teacher: kind: expected a teacher for losses.distillation above 0, got \"none\"";
  }
  if (teacher && config.teacher.path.empty()) return "teacher: path: expected one for this kind, got none";
  return std::nullopt;
}

}  // namespace tessera::train
