#include "train/distiller.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "train/teachers/feature_files.h"
#include "train/teachers/speech_embedding.h"

namespace tessera::train {
namespace {

Result<std::unique_ptr<Teacher>> open_teacher(const TrainConfig& config) {
  if (config.teacher.kind == TeacherConfig::Kind::speech_embedding) {
    auto teacher = SpeechEmbedding::load(config.teacher.path);
    if (!teacher) return teacher.error();
    return std::unique_ptr<Teacher>(std::move(*teacher));
  }
  FeatureFilesOptions options;
  options.sample_rate_hz = config.model.sample_rate_hz;
  options.file_rate_hz = config.teacher.frame_rate_hz;
  auto teacher = FeatureFiles::open(config.teacher.path, options);
  if (!teacher) return teacher.error();
  return std::unique_ptr<Teacher>(std::move(*teacher));
}

}  // namespace

Result<std::unique_ptr<Distiller>> Distiller::open(
    const TrainConfig& config, const Dataset& dataset, Parameters& parameters, ThreadPool& pool,
    const std::function<void(std::int64_t, std::int64_t)>& progress) {
  auto teacher = open_teacher(config);
  if (!teacher) return teacher.error();
  const auto usage = [](const std::string& message) {
    return Error{ErrorCode::usage, "teacher: " + message};
  };
  if ((*teacher)->sample_rate_hz() != config.model.sample_rate_hz) {
    return usage("expected a codec of the teacher's rate, " + std::to_string((*teacher)->sample_rate_hz()) +
                 " Hz, got " + std::to_string(config.model.sample_rate_hz));
  }
  std::unique_ptr<Distiller> distiller(new Distiller());
  const double teacher_frame = (*teacher)->sample_rate_hz() / (*teacher)->frame_rate_hz();
  const std::int64_t frame = config.model.samples_per_frame();
  distiller->teacher_frame_ = std::llround(teacher_frame);
  const std::int64_t rounded = distiller->teacher_frame_;
  if (std::abs(teacher_frame - static_cast<double>(rounded)) > 1e-6 || rounded < 1 ||
      (rounded % frame && frame % rounded)) {
    return usage("expected frames of a whole multiple or part of the codec's " + std::to_string(frame) +
                 " samples, got " + std::to_string(teacher_frame));
  }
  distiller->options_.pool = static_cast<int>(std::max<std::int64_t>(rounded / frame, 1));
  if (frame > rounded) {
    return usage("expected frames of at least the codec's " + std::to_string(frame) + " samples, got " +
                 std::to_string(rounded));
  }
  distiller->dimension_ = (*teacher)->dimension();
  distiller->weight_ = parameters.add("distillation.weight", {config.model.latent, distiller->dimension_});
  distiller->bias_ = parameters.add("distillation.bias", {distiller->dimension_}, Init::zero());

  std::vector<float> pcm;
  for (std::size_t i = 0; i < dataset.recordings().size(); ++i) {
    const Recording& recording = dataset.recordings()[i];
    pcm.resize(static_cast<std::size_t>(recording.samples));
    dataset.read(static_cast<std::int64_t>(i), 0, pcm);
    auto features = (*teacher)->features(recording.relative, pcm, pool);
    if (!features) return features.error();
    distiller->features_.push_back(std::move(*features));
    if (progress)
      progress(static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(dataset.recordings().size()));
  }
  distiller->standardize();
  return distiller;
}

// Mean 0 and variance 1 of every value over all frames: otherwise what all frames have in common makes most
// of a cosine, and a constant satisfies it.
void Distiller::standardize() {
  const std::size_t width = static_cast<std::size_t>(dimension_);
  std::vector<double> sum(width), squares(width);
  double frames = 0;
  for (const Tensor& features : features_) {
    frames += static_cast<double>(features.dim(0));
    for (std::int64_t i = 0; i < features.size(); ++i) {
      const double value = features.f32()[i];
      sum[static_cast<std::size_t>(i) % width] += value;
      squares[static_cast<std::size_t>(i) % width] += value * value;
    }
  }
  for (Tensor& features : features_) {
    for (std::int64_t i = 0; i < features.size(); ++i) {
      const std::size_t e = static_cast<std::size_t>(i) % width;
      const double mean = sum[e] / frames, variance = squares[e] / frames - mean * mean;
      features.f32()[i] =
          static_cast<float>((features.f32()[i] - mean) / std::sqrt(std::max(variance, 1e-12)));
    }
  }
}

Tensor Distiller::loss(Tape& tape, const Tensor& first, const Batch& batch) const {
  const std::int64_t items = first.dim(0), frames = first.dim(1) / options_.pool;
  Tensor teacher = tape.zeros({items, frames, dimension_}), mask = tape.zeros({items, frames});
  for (std::int64_t i = 0; i < items; ++i) {
    const CropInfo& crop = batch.crops[static_cast<std::size_t>(i)];
    if (crop.mixed) continue;  // the teacher heard one voice only
    const Tensor& features = features_[static_cast<std::size_t>(crop.recording)];
    const std::int64_t from = crop.begin / teacher_frame_, to = crop.offset / teacher_frame_;
    const std::int64_t count = std::min({frames - to, features.dim(0) - from, crop.length / teacher_frame_});
    for (std::int64_t j = 0; j < count; ++j) {
      std::copy_n(features.f32() + (from + j) * dimension_, dimension_,
                  teacher.f32() + (i * frames + to + j) * dimension_);
      mask.f32()[i * frames + to + j] = 1;
    }
  }
  return distillation_loss(tape, first, weight_, bias_, teacher, mask, options_);
}

}  // namespace tessera::train
