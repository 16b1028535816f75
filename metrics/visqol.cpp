// From two sounds to a score: alignment, equal levels, spectrograms, patches, statistics, mapping.
#include "metrics/visqol.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/exact_math.h"
#include "metrics/gammatone.h"
#include "metrics/signal.h"
#include "metrics/visqol_align.h"
#include "metrics/visqol_patches.h"

namespace tessera::metrics {
namespace {

constexpr std::size_t kSpeechBands = 21, kAudioBands = 32;
constexpr double kSpeechHighestHz = 8000;

// The lattice's inputs by their name in the file: those of a band, and the quantile.
constexpr const char* kLatticeInputs[] = {"fvnsim", "fvnsim10_", "fstdnsim", "fvdegenergy"};

double mean(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

// The mean over patches of one of their statistics, for each band.
std::vector<double> mean_of(const std::vector<PatchMatch>& matches,
                            std::vector<double> PatchMatch::*statistic) {
  std::vector<double> sums((matches.front().*statistic).size());
  for (const PatchMatch& match : matches) {
    for (std::size_t band = 0; band < sums.size(); ++band) sums[band] += (match.*statistic)[band];
  }
  for (double& sum : sums) sum /= static_cast<double>(matches.size());
  return sums;
}

std::vector<double> mean_of_worst_tenth(const std::vector<PatchMatch>& matches) {
  const std::size_t bands = matches.front().band_means.size();
  const std::size_t count = std::max<std::size_t>(matches.size() / 10, 1);
  std::vector<double> result(bands), values(matches.size());
  for (std::size_t band = 0; band < bands; ++band) {
    for (std::size_t i = 0; i < matches.size(); ++i) values[i] = matches[i].band_means[band];
    std::sort(values.begin(), values.end());
    result[band] = mean(std::span(values).first(count));
  }
  return result;
}

// The deviation over the frames of all patches, from mean and deviation of each. Frames are counted by the
// time that the patch covers.
std::vector<double> pooled_deviations(const std::vector<PatchMatch>& matches,
                                      const std::vector<double>& means, double frame_s) {
  std::vector<double> squares(means.size());
  double total = 0;
  for (const PatchMatch& match : matches) {
    const double frames = std::ceil((match.reference_end_s - match.reference_begin_s) / frame_s);
    total += frames;
    for (std::size_t band = 0; band < means.size(); ++band) {
      const double deviation = match.band_deviations[band], patch_mean = match.band_means[band];
      squares[band] += (frames - 1) * deviation * deviation + frames * patch_mean * patch_mean;
    }
  }
  for (std::size_t band = 0; band < means.size(); ++band) {
    const double variance = total > 1 ? (squares[band] - means[band] * means[band] * total) / (total - 1) : 0;
    squares[band] = std::sqrt(std::max(variance, 0.0));
  }
  return squares;
}

}  // namespace

Result<Visqol> Visqol::load(const VisqolOptions& options) {
  Visqol visqol;
  visqol.options_ = options;
  if (options.mode == VisqolMode::audio) {
    Result<SvrModel> model = SvrModel::open(options.model_path);
    if (!model) return model.error();
    visqol.svr_ = *std::move(model);
  }
  if (options.mode == VisqolMode::speech_lattice) {
    Result<TfliteGraph> graph = TfliteGraph::open(options.model_path);
    if (!graph) return graph.error();
    const std::vector<std::string> inputs = graph->inputs();
    const std::size_t expected = std::size(kLatticeInputs) * kSpeechBands + 1;
    bool named = inputs.size() == expected && std::count(inputs.begin(), inputs.end(), "tau") == 1;
    for (const char* feature : kLatticeInputs) {
      for (std::size_t band = 0; band < kSpeechBands; ++band) {
        named = named && std::count(inputs.begin(), inputs.end(), feature + std::to_string(band)) == 1;
      }
    }
    if (!named) {
      return Error{ErrorCode::mismatch, options.model_path + ": expected the " + std::to_string(expected) +
                                            " inputs of ViSQOL's lattice, got others (" +
                                            std::to_string(inputs.size()) + ")"};
    }
    visqol.lattice_ = *std::move(graph);
  }
  return visqol;
}

double Visqol::predict(const VisqolScore& score) const {
  if (svr_) return std::clamp(svr_->predict(score.band_similarity), 1.0, 5.0);
  if (!lattice_) {
    // The fit to listeners' scores of speech over IP telephony (TCD-VoIP).
    constexpr double kOffset = -262.847869, kSlope = 0.0154302525, kShift = -361.063949, kScale = 1.245063;
    const double mos = kOffset + exact_exp(kSlope * (score.similarity - kShift));
    return std::clamp(options_.scaled ? mos * kScale : mos, 1.0, 5.0);
  }
  std::map<std::string, float, std::less<>> inputs = {{"tau", 0.5f}};  // the median of listeners
  const std::vector<double>* features[] = {&score.band_similarity, &score.band_lowest, &score.band_deviations,
                                           &score.band_energies};
  for (std::size_t i = 0; i < std::size(kLatticeInputs); ++i) {
    for (std::size_t band = 0; band < kSpeechBands; ++band) {
      inputs[kLatticeInputs[i] + std::to_string(band)] = static_cast<float>((*features[i])[band]);
    }
  }
  return lattice_->run(inputs);
}

Result<VisqolScore> Visqol::score(std::span<const float> reference, std::span<const float> degraded,
                                  int sample_rate_hz) const {
  if (auto good = check_pair(reference, degraded, sample_rate_hz, false); !good) return good.error();
  const std::size_t longest = std::max(reference.size(), degraded.size());
  if (longest > kMaxSamples) {
    return Error{ErrorCode::unsupported, "ViSQOL compares up to " + std::to_string(kMaxSamples) +
                                             " samples, got " + std::to_string(longest)};
  }
  const bool audio = options_.mode == VisqolMode::audio;
  const GammatoneFilterbank filterbank(sample_rate_hz, static_cast<int>(audio ? kAudioBands : kSpeechBands),
                                       audio ? sample_rate_hz / 2.0 : kSpeechHighestHz);
  MatchOptions match;
  match.patch_frames = audio ? 30 : 20;
  match.frame_s = static_cast<double>(filterbank.hop()) / sample_rate_hz;
  // Patches begin half a patch into the sound; a frame earlier in speech mode.
  const std::size_t least_frames = match.patch_frames / 2 * 3 - (audio ? 0 : 1);
  const std::size_t least = filterbank.window() + (least_frames - 1) * filterbank.hop();
  const std::vector<double> clean = widened(reference);
  if (energy(clean) == 0) return Error{ErrorCode::format, "ViSQOL needs a reference that is not silent"};
  if (clean.size() < least) {
    return Error{ErrorCode::format, "ViSQOL needs " + std::to_string(least) +
                                        " samples of reference at this rate, got " +
                                        std::to_string(clean.size())};
  }
  std::vector<double> decoded = widened(degraded);
  VisqolScore score;
  if (energy(decoded) == 0) return score;
  decoded = delayed(decoded, envelope_lag(clean, decoded));
  const double mean_square = energy(decoded) / static_cast<double>(decoded.size());
  if (mean_square == 0) return score;
  const double level = std::sqrt(energy(clean) / static_cast<double>(clean.size()) / mean_square);
  for (double& sample : decoded) sample *= level;
  Spectrogram clean_bands = filterbank(clean), decoded_bands = filterbank(decoded);
  if (decoded_bands.frames == 0) {
    return Error{ErrorCode::format, "ViSQOL needs a window of " + std::to_string(filterbank.window()) +
                                        " samples of degraded sound beside the reference, got " +
                                        std::to_string(decoded.size())};
  }
  prepare_for_comparison(clean_bands, decoded_bands);
  const std::vector<std::size_t> patches =
      audio ? even_patches(clean_bands.frames, match.patch_frames)
            : voiced_patches(clean, filterbank.hop(), clean_bands.frames, match.patch_frames);
  const NeighbourSums clean_sums(clean_bands), decoded_sums(decoded_bands, match.patch_frames);
  std::vector<PatchMatch> matches = match_patches(clean_sums, patches, decoded_sums, match);
  if (matches.empty()) {
    return Error{ErrorCode::format,
                 "ViSQOL found nothing to compare: the degraded sound ends before the "
                 "reference's first active part"};
  }
  realign(matches, clean, decoded, filterbank, sample_rate_hz);
  score.patches = matches.size();
  score.band_similarity = mean_of(matches, &PatchMatch::band_means);
  score.band_lowest = mean_of_worst_tenth(matches);
  score.band_deviations = pooled_deviations(matches, score.band_similarity, match.frame_s);
  score.band_energies = mean_of(matches, &PatchMatch::band_energies);
  score.similarity = mean(score.band_similarity);
  constexpr double kNothingAlike = 0.15;
  if (score.similarity >= kNothingAlike) score.mos_lqo = predict(score);
  return score;
}

}  // namespace tessera::metrics
