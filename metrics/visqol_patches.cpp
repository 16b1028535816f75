// Where patches lie, what is measured in them, and their alignment by samples. The search for matches is in
// visqol_match.cpp.
#include "metrics/visqol_patches.h"

#include <algorithm>
#include <cmath>

#include "metrics/visqol_align.h"

namespace tessera::metrics {
namespace {

// Whether each frame of `hop` samples is loud: root mean square of at least 5000 in 16 bits.
std::vector<bool> loud_frames(std::span<const double> sound, std::size_t begin, std::size_t hop,
                              std::size_t count) {
  double peak = sound.front();
  for (const double value : sound) peak = std::max(peak, value);
  std::vector<bool> loud;
  for (std::size_t i = 0; i < count && begin + hop <= sound.size(); ++i, begin += hop) {
    double squares = 0;
    for (const double value : sound.subspan(begin, hop)) {
      const double scaled = peak == 0 ? 0.0 : value / peak * 32768;
      const double sample = std::trunc(std::clamp(scaled, -32768.0, 32767.0));
      squares += sample * sample;
    }
    loud.push_back(squares >= 5000.0 * 5000.0 * static_cast<double>(hop));
  }
  return loud;
}

// The samples of a time span as a match means it: the last sample of the sound is never taken, and what lies
// beyond its end counts as silence, put before.
std::vector<double> samples_of(std::span<const double> sound, double begin_s, double end_s,
                               int sample_rate_hz) {
  const double begin = std::max(begin_s * sample_rate_hz, 0.0), end = end_s * sample_rate_hz;
  const double beyond = end - static_cast<double>(sound.size());
  std::vector<double> samples(beyond > 0 ? static_cast<std::size_t>(beyond) : 0);
  const std::size_t last = std::min(sound.size() - 1, static_cast<std::size_t>(std::max(end, 0.0)));
  const std::size_t first = std::min(last, static_cast<std::size_t>(begin));
  samples.insert(samples.end(), sound.begin() + static_cast<std::ptrdiff_t>(first),
                 sound.begin() + static_cast<std::ptrdiff_t>(last));
  return samples;
}

}  // namespace

std::vector<std::size_t> even_patches(std::size_t frames, std::size_t patch_frames) {
  std::vector<std::size_t> patches;
  const std::size_t first = patch_frames / 2;
  if (frames < patch_frames + first) return patches;
  const std::size_t end = std::max(frames - patch_frames, first + 1);
  for (std::size_t i = first; i < end; i += patch_frames) patches.push_back(i - 1);
  return patches;
}

std::vector<std::size_t> voiced_patches(std::span<const double> reference, std::size_t hop,
                                        std::size_t frames, std::size_t patch_frames) {
  std::vector<std::size_t> patches;
  const std::size_t first = patch_frames / 2 - 1;
  if (frames < first) return patches;
  const std::size_t count = (frames - first) / patch_frames;
  // The published detector starts at the sample, not the frame, of number `first`.
  const std::vector<bool> loud = loud_frames(reference, first, hop, count * patch_frames);
  constexpr std::size_t kSilentFrames = 3;  // so many in a row make a pause
  const auto voiced = [&](std::size_t frame) {
    if (frame + 1 < kSilentFrames) return true;
    for (std::size_t i = 0; i < kSilentFrames; ++i) {
      if (loud[frame - i]) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = std::min((i + 1) * patch_frames, loud.size());
    for (std::size_t frame = i * patch_frames; frame < end; ++frame) {
      if (!voiced(frame)) continue;
      patches.push_back(first + i * patch_frames);
      break;
    }
  }
  return patches;
}

PatchMatch compare(const NeighbourSums& reference, std::size_t reference_begin, const NeighbourSums& degraded,
                   std::size_t degraded_begin, std::size_t frames) {
  PatchMatch match;
  std::vector<double> map;
  match.similarity = similarity(reference, reference_begin, degraded, degraded_begin, frames, map);
  const std::size_t stride = reference.stride;
  const double count = static_cast<double>(frames);
  for (std::size_t band = 0; band < reference.bands; ++band) {
    double sum = 0, energy = 0, squares = 0;
    for (std::size_t t = 0; t < frames; ++t) {
      sum += map[t * stride + band];
      energy += degraded.values[(degraded_begin + t) * stride + band];
    }
    const double mean = sum / count;
    for (std::size_t t = 0; t < frames; ++t) {
      const double difference = map[t * stride + band] - mean;
      squares += difference * difference;
    }
    match.band_means.push_back(mean);
    match.band_deviations.push_back(frames > 1 ? std::sqrt(squares / (count - 1)) : 0.0);
    match.band_energies.push_back(energy / count);
  }
  return match;
}

void realign(std::vector<PatchMatch>& matches, std::span<const double> reference,
             std::span<const double> degraded, const GammatoneFilterbank& filterbank, int sample_rate_hz) {
  for (PatchMatch& match : matches) {
    if (match.lost) continue;
    std::vector<double> a =
        samples_of(reference, match.reference_begin_s, match.reference_end_s, sample_rate_hz);
    std::vector<double> b =
        samples_of(degraded, match.degraded_begin_s, match.degraded_end_s, sample_rate_hz);
    if (a.empty() || b.empty()) continue;
    const std::int64_t lag = envelope_lag(a, b);
    b = delayed(b, lag);
    if (lag > 0 && b.size() > a.size()) {  // the reference's start has only the zeros as its partner
      a.erase(a.begin(), a.begin() + lag);
      b.erase(b.begin(), b.begin() + lag);
    }
    const std::size_t length = std::min(a.size(), b.size());
    a.resize(length);
    b.resize(length);
    if (filterbank.frames(length) == 0) continue;
    Spectrogram reference_part = filterbank(a), degraded_part = filterbank(b);
    prepare_for_comparison(reference_part, degraded_part);
    PatchMatch again =
        compare(NeighbourSums(reference_part), 0, NeighbourSums(degraded_part), 0, reference_part.frames);
    if (again.similarity < match.similarity) continue;
    const double lag_s = static_cast<double>(lag) / sample_rate_hz;
    const double duration_s = static_cast<double>(length) / sample_rate_hz;
    again.reference_begin_s = match.reference_begin_s + std::max(lag_s, 0.0);
    again.degraded_begin_s = match.degraded_begin_s - std::min(lag_s, 0.0);
    again.reference_end_s = again.reference_begin_s + duration_s;
    again.degraded_end_s = again.degraded_begin_s + duration_s;
    match = std::move(again);
  }
}

}  // namespace tessera::metrics
