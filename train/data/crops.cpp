#include "train/data/crops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/hash.h"
#include "core/random.h"
#include "train/data/decimals.h"
#include "train/data/shuffle.h"

namespace tessera::train {
namespace {

// Streams of random numbers of one seed, each indexed by the number of the draw.
constexpr std::uint64_t kCropStream = 1, kNoiseStream = 2;

constexpr int kMostRows = 1 << 20;  // kMostSteps batches of them can still be counted
constexpr std::int64_t kMostSamples = std::int64_t{1} << 31;

double from_db(double db) {
  return exact_pow(10, db / 20);
}

/// floor(fraction * count) for a fraction in [0, 1), kept below count against rounding.
std::int64_t pick(double fraction, std::int64_t count) {
  return std::min(static_cast<std::int64_t>(fraction * static_cast<double>(count)), count - 1);
}

void need(bool good, const std::string& expected, const std::string& got) {
  if (!good) fail("crops", expected, got);
}

void check_options(const CropOptions& o) {
  need(o.batch >= 1 && o.batch <= kMostRows, "batch from 1 to " + std::to_string(kMostRows),
       std::to_string(o.batch));
  need(o.align >= 1, "align >= 1", std::to_string(o.align));
  need(o.length >= 1 && o.length <= kMostSamples, "length from 1 to " + std::to_string(kMostSamples),
       std::to_string(o.length));
  need(o.redraws >= 0, "redraws >= 0", std::to_string(o.redraws));
  const auto range = [](const char* what, double low, double high) {
    need(std::isfinite(low) && std::isfinite(high) && low <= high,
         std::string(what) + "_min_db <= " + what + "_max_db",
         std::to_string(low) + " and " + std::to_string(high));
  };
  range("gain", o.gain_min_db, o.gain_max_db);
  range("mix", o.mix_min_db, o.mix_max_db);
  const auto share = [](const char* what, double p) {
    need(p >= 0 && p <= 1, std::string(what) + " from 0 to 1", std::to_string(p));
  };
  share("keep_quiet", o.keep_quiet);
  share("mix_probability", o.mix_probability);
  for (const auto& level : {o.noise_dbfs, o.quiet_dbfs})
    need(!level || std::isfinite(*level), "a level in dBFS", level ? std::to_string(*level) : "");
}

}  // namespace

Crops::Crops(const Dataset& dataset, const CropOptions& options) : dataset_(dataset), options_(options) {
  check_options(options);
  std::int64_t end = 0;
  for (const auto& recording : dataset.recordings()) ends_.push_back(end += recording.samples);
  stretches_ = std::max<std::int64_t>(1, end / options.length);
}

double Crops::steps_per_epoch() const {
  return static_cast<double>(stretches_) / options_.batch;
}

Batch Crops::rows(std::int64_t step, int first, int count) const {
  need(step >= 0 && step < kMostSteps, "a step from 0 to 2^40 - 1", std::to_string(step));
  need(first >= 0 && count >= 1 && count <= options_.batch - first,
       "rows within a batch of " + std::to_string(options_.batch),
       std::to_string(count) + " rows from " + std::to_string(first));
  Batch batch;
  batch.step = step;
  batch.audio = Tensor::zeros({count, options_.length});  // [count, L]
  try {
    for (int row = 0; row < count; ++row)
      batch.crops.push_back(
          fill(step * options_.batch + first + row, batch.audio.f32() + row * options_.length));
  } catch (const ResultError& trouble) {
    throw ResultError({trouble.error().code, "step " + std::to_string(step) + ": " + trouble.what()});
  }
  return batch;
}

/// The crop whose start matches a point of the recordings laid end to end: each recording in proportion to
/// its length, each of its aligned starts alike. `offset` in [0, 1) places a short recording in the row.
CropPart Crops::part_at(std::int64_t point, double offset) const {
  const auto recording = std::upper_bound(ends_.begin(), ends_.end(), point) - ends_.begin();
  const std::int64_t samples = dataset_.recordings()[static_cast<std::size_t>(recording)].samples;
  const std::int64_t within = point - (ends_[static_cast<std::size_t>(recording)] - samples);
  CropPart part;
  part.recording = recording;
  part.length = std::min(samples, options_.length);
  const std::int64_t starts = (samples - part.length) / options_.align + 1;
  part.begin = options_.align * pick(static_cast<double>(within) / static_cast<double>(samples), starts);
  part.offset = options_.align * pick(offset, (options_.length - part.length) / options_.align + 1);
  return part;
}

/// The crop of draw number `draw`, within its stretch of its epoch.
CropPart Crops::planned(std::int64_t draw, double within, double offset) const {
  const std::int64_t stretch = Shuffle(options_.seed, draw / stretches_, stretches_)(draw % stretches_);
  return part_at(
      pick((static_cast<double>(stretch) + within) / static_cast<double>(stretches_), ends_.back()), offset);
}

bool Crops::quiet(const CropPart& part, const float* row) const {
  double power = 0;
  for (std::int64_t i = part.offset; i < part.offset + part.length; ++i)
    power += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  const double level = from_db(*options_.quiet_dbfs);
  return power < level * level * static_cast<double>(part.length);
}

CropInfo Crops::fill(std::int64_t draw, float* row) const {
  const CropOptions& o = options_;
  const auto number = static_cast<std::uint64_t>(draw);
  // Every decision takes its numbers whether it needs them or not: switching one option on leaves the others'
  // outcome alone.
  Random random(o.seed, kCropStream, number);
  const bool keep = random.uniform() < o.keep_quiet;
  const double gain_db = o.gain_min_db + random.uniform() * (o.gain_max_db - o.gain_min_db);
  const bool flip = (random.next() >> 63) != 0 && o.flip_polarity;
  const bool mix = random.uniform() < o.mix_probability;
  const double mix_db = o.mix_min_db + random.uniform() * (o.mix_max_db - o.mix_min_db);
  const std::int64_t mix_point = random.below(ends_.back());
  const float mix_offset = random.uniform(), within = random.uniform(), offset = random.uniform();

  const auto read = [this](const CropPart& part, float* to) {
    dataset_.read(part.recording, part.begin, {to + part.offset, static_cast<std::size_t>(part.length)});
  };
  CropInfo info;
  static_cast<CropPart&>(info) = planned(draw, within, offset);
  read(info, row);
  for (int again = 0; again < o.redraws && o.quiet_dbfs && !keep && quiet(info, row); ++again) {
    std::fill_n(row, o.length, 0.0f);
    const std::int64_t point = random.below(ends_.back());
    static_cast<CropPart&>(info) = part_at(point, random.uniform());
    read(info, row);
  }
  if (mix) {
    info.mixed = part_at(mix_point, mix_offset);
    info.mixed->gain = static_cast<float>(from_db(mix_db));
    std::vector<float> other(static_cast<std::size_t>(o.length));
    read(*info.mixed, other.data());
    for (std::int64_t i = 0; i < o.length; ++i)
      row[i] += info.mixed->gain * other[static_cast<std::size_t>(i)];
  }
  auto gain = static_cast<float>(from_db(gain_db));
  if (gain > 1) {
    float peak = 0;
    for (std::int64_t i = 0; i < o.length; ++i) peak = std::max(peak, std::abs(row[i]));
    if (gain * peak > 1) gain = std::max(1.0f, 1 / peak);
  }
  if (flip) gain = -gain;
  for (std::int64_t i = 0; i < o.length; ++i) row[i] *= gain;
  info.gain = gain;
  if (info.mixed) info.mixed->gain *= gain;
  if (o.noise_dbfs) {
    // Uniform in [-a, a) has the RMS a / sqrt(3).
    const auto peak = static_cast<float>(from_db(*o.noise_dbfs) * std::sqrt(3.0));
    Random noise(o.seed, kNoiseStream, number);
    for (std::int64_t i = info.offset; i < info.offset + info.length; ++i)
      row[i] += peak * (2 * noise.uniform() - 1);
  }
  return info;
}

std::string Crops::name(const CropInfo& crop) const {
  const auto one = [this](const CropPart& part) {
    return dataset_.recordings().at(static_cast<std::size_t>(part.recording)).name + " at " +
           two_decimals(static_cast<double>(part.begin) / dataset_.sample_rate_hz()) + " s";
  };
  return one(crop) + (crop.mixed ? " + " + one(*crop.mixed) : "");
}

std::string Crops::name(const Batch& batch) const {
  std::string text = "step " + std::to_string(batch.step) + ":";
  for (std::size_t i = 0; i < batch.crops.size(); ++i) text += (i ? ", " : " ") + name(batch.crops[i]);
  return text;
}

DataPosition Crops::position(std::int64_t step) const {
  DataPosition position;
  position.seed = options_.seed;
  position.step = step;
  position.fingerprint = dataset_.fingerprint();
  position.recordings = static_cast<std::int64_t>(dataset_.recordings().size());
  position.samples = dataset_.samples();
  return position;
}

Result<void> Crops::check(const DataPosition& saved) const {
  const DataPosition own = position(saved.step);
  const auto describe = [this](const DataPosition& p) {
    return std::to_string(p.recordings) + " recordings, " +
           two_decimals(static_cast<double>(p.samples) / dataset_.sample_rate_hz()) + " s, fingerprint " +
           hex(p.fingerprint);
  };
  if (saved.step < 0 || saved.step >= kMostSteps)
    return Error{ErrorCode::mismatch,
                 "the saved data position cannot be: step " + std::to_string(saved.step)};
  if (saved.fingerprint != own.fingerprint)
    return Error{ErrorCode::mismatch, "the data is not what the run was started with: expected " +
                                          describe(saved) + "; got " + describe(own)};
  if (saved.seed != own.seed)
    return Error{ErrorCode::mismatch, "the run was started with data seed " + std::to_string(saved.seed) +
                                          ", got seed " + std::to_string(own.seed)};
  return {};
}

}  // namespace tessera::train
