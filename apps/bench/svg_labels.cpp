#include "apps/bench/svg_labels.h"

#include <algorithm>
#include <cmath>

namespace tessera::bench {
namespace {

constexpr double kStep = 4;  // px between the samples of a curve that a label should not cover

struct Candidate {
  double dx, dy;
  TextAnchor anchor;
};

// From the end of a curve to the start, middle or end of the text; the first are the best.
constexpr Candidate kCandidates[] = {
    {9, 4, TextAnchor::start},    {8, -7, TextAnchor::start},  {8, 15, TextAnchor::start},
    {0, -10, TextAnchor::middle}, {0, 20, TextAnchor::middle}, {-8, -8, TextAnchor::end},
    {-8, 16, TextAnchor::end},    {-9, 4, TextAnchor::end},
};

SvgBox box_of(const SvgLabel& label, double width, double font_px) {
  const double before = label.anchor == TextAnchor::start ? 0 : label.anchor == TextAnchor::middle ? 0.5 : 1;
  SvgBox box;
  box.left = label.x - before * width;
  box.right = box.left + width;
  box.top = label.y - 0.85 * font_px;
  box.bottom = label.y + 0.25 * font_px;
  return box;
}

double overlap(const SvgBox& a, const SvgBox& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0;
}

bool holds(const SvgBox& box, const SvgPlace& place) {
  return place.x >= box.left && place.x <= box.right && place.y >= box.top && place.y <= box.bottom;
}

/// Places along the lines of a curve, and its points thrice: markers are larger than lines.
void add_obstacles(const std::vector<SvgPlace>& curve, std::vector<SvgPlace>& obstacles) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    obstacles.insert(obstacles.end(), 3, curve[i]);
    if (i == 0) continue;
    const double dx = curve[i].x - curve[i - 1].x, dy = curve[i].y - curve[i - 1].y;
    const int samples = static_cast<int>(std::min(1e3, std::sqrt(dx * dx + dy * dy) / kStep));
    for (int j = 1; j < samples; ++j) {
      const double part = static_cast<double>(j) / samples;
      obstacles.push_back({curve[i - 1].x + part * dx, curve[i - 1].y + part * dy});
    }
  }
}

double cost(const SvgBox& box, std::span<const SvgBox> taken, std::span<const SvgPlace> obstacles,
            const SvgBox& page) {
  double sum = 0;
  for (const SvgBox& other : taken) sum += overlap(box, other);
  for (const SvgPlace& place : obstacles) sum += holds(box, place) ? 4 : 0;
  const double outside = std::max(0.0, page.left - box.left) + std::max(0.0, box.right - page.right) +
                         std::max(0.0, page.top - box.top) + std::max(0.0, box.bottom - page.bottom);
  return sum + 100 * outside;
}

}  // namespace

std::vector<SvgLabel> place_labels(std::span<const double> widths,
                                   std::span<const std::vector<SvgPlace>> curves,
                                   std::vector<SvgPlace> obstacles, double font_px, const SvgBox& page) {
  for (const auto& curve : curves) add_obstacles(curve, obstacles);
  std::vector<SvgBox> taken;
  std::vector<SvgLabel> labels;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    SvgLabel best;
    SvgBox best_box;
    double least = 1e300, preference = 0;
    for (const SvgPlace& end : {curves[i].back(), curves[i].front()}) {
      for (const Candidate& candidate : kCandidates) {
        SvgLabel label;
        label.x = end.x + candidate.dx;
        label.y = end.y + candidate.dy;
        label.anchor = candidate.anchor;
        const SvgBox box = box_of(label, widths[i], font_px);
        const double price = cost(box, taken, obstacles, page) + preference;
        preference += 1.5;
        if (price < least) {
          least = price;
          best = label;
          best_box = box;
        }
      }
    }
    labels.push_back(best);
    taken.push_back(best_box);
  }
  return labels;
}

}  // namespace tessera::bench
