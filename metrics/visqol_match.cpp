// Matching by dynamic programming: the best sum of similarities of patches up to i whose i-th match begins at
// a frame. A patch may also be given up as lost, at the frame where the one before it was matched.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "metrics/visqol_patches.h"

namespace tessera::metrics {
namespace {

// The search range of a patch, and for each of its frames the best sum and where the patch before stood.
struct Column {
  std::size_t begin = 0;
  std::vector<double> sums = {};
  std::vector<std::size_t> before = {};

  std::size_t end() const { return begin + sums.size(); }
};

Column extend(const Column* previous, std::size_t begin, std::vector<double> similarities) {
  Column column;
  column.begin = begin;
  column.sums = std::move(similarities);
  if (!previous) return column;
  column.before.resize(column.sums.size());
  double best = -HUGE_VAL;  // over frames before the current one; the latest of equal ones
  std::size_t best_frame = previous->begin, next = previous->begin;
  for (std::size_t i = 0; i < column.sums.size(); ++i) {
    const std::size_t frame = column.begin + i;
    for (; next < std::min(frame, previous->end()); ++next) {
      if (previous->sums[next - previous->begin] < best) continue;
      best = previous->sums[next - previous->begin];
      best_frame = next;
    }
    column.sums[i] += best;
    column.before[i] = best_frame;
    if (frame < previous->begin || frame >= previous->end()) continue;
    const double lost = previous->sums[frame - previous->begin];
    if (lost > column.sums[i]) {
      column.sums[i] = lost;
      column.before[i] = frame;
    }
  }
  return column;
}

}  // namespace

std::vector<PatchMatch> match_patches(const NeighbourSums& reference, std::span<const std::size_t> patches,
                                      const NeighbourSums& degraded, const MatchOptions& options) {
  const std::size_t frames = degraded.frames - options.patch_frames;
  const std::size_t range = options.search_patches * options.patch_frames;
  std::size_t count = patches.size();
  while (count > 0 && patches[count - 1] > frames + options.patch_frames / 2) --count;
  std::vector<Column> columns;
  std::vector<double> map;
  for (const std::size_t patch : patches.first(count)) {
    const std::size_t begin = patch > range ? patch - range : 0;
    std::vector<double> similarities;
    for (std::size_t frame = begin; frame < std::min(frames, patch + range + 1); ++frame) {
      similarities.push_back(similarity(reference, patch, degraded, frame, options.patch_frames, map));
    }
    if (similarities.empty()) break;
    columns.push_back(extend(columns.empty() ? nullptr : &columns.back(), begin, std::move(similarities)));
  }
  std::vector<PatchMatch> matches(columns.size());
  if (columns.empty()) return matches;
  const std::vector<double>& last = columns.back().sums;
  std::size_t frame = columns.back().begin + static_cast<std::size_t>(std::distance(
                                                 last.begin(), std::max_element(last.begin(), last.end())));
  const double patch_s = options.frame_s * static_cast<double>(options.patch_frames);
  for (std::size_t i = columns.size(); i-- > 0;) {
    PatchMatch& match = matches[i];
    match = compare(reference, patches[i], degraded, frame, options.patch_frames);
    match.reference_begin_s = static_cast<double>(patches[i]) * options.frame_s;
    match.reference_end_s = match.reference_begin_s + patch_s;
    const std::size_t before = i > 0 ? columns[i].before[frame - columns[i].begin] : frame;
    match.lost = i > 0 && before == frame;
    if (match.lost) {
      match.similarity = 0;
      match.band_means.assign(reference.bands, 0.0);
    } else {
      match.degraded_begin_s = static_cast<double>(frame) * options.frame_s;
      match.degraded_end_s = match.degraded_begin_s + patch_s;
    }
    frame = before;
  }
  return matches;
}

}  // namespace tessera::metrics
