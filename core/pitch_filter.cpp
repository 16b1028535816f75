#include "core/pitch_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/exact_math.h"
#include "core/norm.h"

namespace tessera {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kMostPeriods = 8;
// Mean square that is added to both sides of a comparison: about that of the last bit of 16-bit sound.
constexpr double kSilence = 1e-9;
// Where the sound is less alike a period later, it is left alone; from kPeriodic on the weight is whole.
constexpr double kAperiodic = 0.3, kPeriodic = 0.8;
// The shortest period is taken that is nearly as good as the best: multiples of a period are as alike.
constexpr double kNearly = 0.85;
// What a period near the one before gains, if the sound was at least kVoiced alike then.
constexpr double kFollowing = 0.1, kVoiced = 0.5;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

void expect_between(const char* what, double lowest, double highest, double value) {
  if (value >= lowest && value <= highest) return;
  fail("pitch_filter",
       std::string(what) + " from " + std::to_string(lowest) + " to " + std::to_string(highest),
       std::to_string(value));
}

const PitchFilterOptions& checked(const PitchFilterOptions& options) {
  constexpr int kMost = 1 << 14;
  expect_between("a hop", 1, kMost, options.hop);
  expect_between("a shortest period", 2, kMost, options.shortest);
  expect_between("a longest period", options.shortest + 1, kMost, options.longest);
  expect_between("periods before", 0, kMostPeriods, options.before);
  expect_between("periods after", 0, kMostPeriods, options.after);
  expect_between("a smoothing", 1, kMost, options.smoothing);
  expect_between("a strength", 0, 4, options.strength);
  return options;
}

// Samples to one side of an instant that are compared or averaged.
int reach(const PitchFilterOptions& options, int periods) {
  return std::max(periods, 1) * options.longest + options.smoothing;
}

// A low-pass filter: sinc of period `length` under a Hann window, its sum 1.
std::vector<float> low_pass(int length) {
  std::vector<double> values;
  double sum = 0;
  for (int i = -length; i <= length; ++i) {
    const double turn = 2 * kPi * i / length;
    const double sinc = i == 0 ? 2.0 / length : exact_sin(turn) / (kPi * i);
    values.push_back(sinc * (0.5 + 0.5 * exact_cos(kPi * i / (length + 1))));
    sum += values.back();
  }
  std::vector<float> kernel;
  for (const double value : values) kernel.push_back(static_cast<float>(value / sum));
  return kernel;
}

}  // namespace

PitchFilter::PitchFilter(const PitchFilterOptions& options)
    : options_(checked(options)),
      past_(reach(options, options.before)),
      future_(reach(options, options.after)),
      step_(std::max(1, options.smoothing / 4)),
      kernel_(low_pass(options.smoothing)),
      window_({.channels = 1, .extent = past_ + options.hop + future_, .stride = options.hop}) {}

void PitchFilter::smooth(std::span<const float> sound, float* smoothed) const {
  const std::size_t width = kernel_.size(), count = sound.size() - (width - 1);
  float* y = smoothed + options_.smoothing;
  std::fill_n(y, count, 0.0f);
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t i = 0; i < count; ++i) y[i] += kernel_[k] * sound[i + k];
  }
}

void PitchFilter::smooth_gradient(std::span<const float> dsmoothed, std::span<float> dsound) const {
  const std::size_t width = kernel_.size(), count = dsound.size() - (width - 1);
  const float* dy = dsmoothed.data() + options_.smoothing;
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t i = 0; i < count; ++i) dsound[i + k] += kernel_[k] * dy[i];
  }
}

// How alike the sound is to itself a period later, both half a period from the center: 2 a.b / (a.a + b.b)
// over every step_-th of `longest` samples.
Pitch PitchFilter::estimate(const float* center, const Pitch& before, const Scratch& scratch) const {
  const int window = options_.longest, count = window / step_, phase_size = 2 * window / step_ + 1;
  const float* left = center - window;
  // Every step_-th sample side by side, and the energies of all windows by sums of them from the left end.
  for (int i = 0; i < 2 * window; ++i) {
    scratch.phases[to_size(i % step_ * phase_size + i / step_)] = left[i];
    scratch.sums[to_size(i + step_)] =
        (i < step_ ? 0 : scratch.sums[to_size(i)]) + static_cast<double>(left[i]) * left[i];
  }
  std::fill_n(scratch.sums.begin(), step_, 0.0);
  const auto samples = [&](int first) {
    return scratch.phases.data() + first % step_ * phase_size + first / step_;
  };
  const auto energy = [&](int first) {
    return scratch.sums[to_size(first + count * step_)] - scratch.sums[to_size(first)];
  };
  // By period, from shortest - 1 to longest + 1.
  const auto at = [&](int period) -> double& {
    return scratch.alike[to_size(period - options_.shortest + 1)];
  };
  std::fill(scratch.alike.begin(), scratch.alike.end(), 0.0);
  const int slack = std::max(3, before.period / 8);
  double best = 0;
  for (int period = options_.shortest; period <= window; ++period) {
    const int first = (window - period) / 2;
    const double product = fixed_dot(samples(first), samples(first + period), to_size(count));
    at(period) = product / (0.5 * (energy(first) + energy(first + period)) + kSilence * count);
    if (before.voiced && std::abs(period - before.period) <= slack) at(period) += kFollowing;
    best = std::max(best, at(period));
  }
  Pitch pitch{.period = options_.shortest};
  for (int period = options_.shortest; period <= window; ++period) {
    const bool peak = at(period) >= at(period - 1) && at(period) >= at(period + 1);
    if (peak && at(period) > kNearly * best) {
      pitch.period = period;
      break;
    }
  }
  const double value = at(pitch.period);
  pitch.weight = options_.strength *
                 static_cast<float>(std::clamp((value - kAperiodic) / (kPeriodic - kAperiodic), 0.0, 1.0));
  pitch.voiced = value > kVoiced ? 1 : 0;
  return pitch;
}

void PitchFilter::track(std::span<const float> smoothed, std::span<Pitch> pitches,
                        const Scratch& scratch) const {
  const float* center = smoothed.data() + past_;
  for (std::size_t i = 1; i < pitches.size(); ++i) {
    center += options_.hop;
    pitches[i] = estimate(center, pitches[i - 1], scratch);
  }
}

std::size_t PitchFilter::scratch_bytes() const {
  const std::size_t periods = to_size(options_.longest - options_.shortest + 3);
  const std::size_t samples = to_size(2 * options_.longest + step_);
  return (samples + periods) * sizeof(double) + samples * sizeof(float);
}

PitchFilter::Scratch PitchFilter::scratch_in(void* memory) const {
  const std::size_t periods = to_size(options_.longest - options_.shortest + 3);
  const std::size_t samples = to_size(2 * options_.longest + step_);
  double* doubles = static_cast<double*>(memory);
  return {.sums = {doubles, samples},
          .alike = {doubles + samples, periods},
          .phases = {reinterpret_cast<float*>(doubles + samples + periods), samples}};
}

// body(offset from a sample, weight) for the neighbours that a sample is averaged with, and for itself what
// it loses to them. Weights fall with the distance, a whole one being that of the sample itself.
template <class Body>
void PitchFilter::for_neighbours(const Pitch& pitch, const Body& body) const {
  if (pitch.weight <= 0) return;
  const int most = std::max(options_.before, options_.after) + 1;
  const auto weight = [&](int d) {
    return pitch.weight * static_cast<float>(most - std::abs(d)) / static_cast<float>(most);
  };
  float others = 0;
  for (int d = -options_.before; d <= options_.after; ++d) {
    if (d != 0) others += weight(d);
  }
  for (int d = -options_.before; d <= options_.after; ++d) {
    body(d * pitch.period, d == 0 ? -others / (1 + others) : weight(d) / (1 + others));
  }
}

// body(first sample of the hop, offset, weight, rises): the neighbour's weight rises from 0 to this over the
// hop, or falls from it to 0.
template <class Body>
void PitchFilter::for_hops(std::span<const Pitch> pitches, const Body& body) const {
  for (std::size_t i = 0; i + 1 < pitches.size(); ++i) {
    for (const bool rises : {false, true}) {
      for_neighbours(pitches[i + rises], [&](int offset, float weight) {
        body(static_cast<std::ptrdiff_t>(i) * options_.hop, offset, weight, rises);
      });
    }
  }
}

void PitchFilter::combine(std::span<const float> sound, std::span<const float> smoothed,
                          std::span<const Pitch> pitches, float* y) const {
  const int hop = options_.hop;
  std::copy_n(sound.data() + past_, (pitches.size() - 1) * to_size(hop), y);
  for_hops(pitches, [&](std::ptrdiff_t first, int offset, float weight, bool rises) {
    const float* x = smoothed.data() + past_ + first + offset;
    const float step = (rises ? weight : -weight) / static_cast<float>(hop), start = rises ? 0 : weight;
    for (int n = 0; n < hop; ++n) y[first + n] += (start + step * static_cast<float>(n)) * x[n];
  });
}

void PitchFilter::combine_gradient(const float* dy, std::span<const Pitch> pitches, std::span<float> dsound,
                                   std::span<float> dsmoothed) const {
  const int hop = options_.hop;
  const std::size_t count = (pitches.size() - 1) * to_size(hop);
  for (std::size_t n = 0; n < count; ++n) dsound[to_size(past_) + n] += dy[n];
  for_hops(pitches, [&](std::ptrdiff_t first, int offset, float weight, bool rises) {
    float* dx = dsmoothed.data() + past_ + first + offset;
    const float step = (rises ? weight : -weight) / static_cast<float>(hop), start = rises ? 0 : weight;
    for (int n = 0; n < hop; ++n) dx[n] += (start + step * static_cast<float>(n)) * dy[first + n];
  });
}

// Behind the kept samples in a stream's state.
std::size_t PitchFilter::state_bytes() const {
  return window_.state_bytes() + Workspace::padded(sizeof(Pitch));
}

void PitchFilter::init_state(std::byte* state) const {
  window_.init_state(state);
  std::memset(state + window_.state_bytes(), 0, state_bytes() - window_.state_bytes());
}

int PitchFilter::max_rows(int rows) const {
  return window_.max_outputs(rows) * options_.hop;
}

std::size_t PitchFilter::workspace_bytes(int streams, int rows) const {
  const std::size_t run = Workspace::padded(to_size(window_.run_rows(rows)) * sizeof(float));
  return Workspace::padded(to_size(streams) * sizeof(CausalWindow::Run)) +
         Workspace::padded(to_size(streams) * sizeof(int)) + (to_size(streams) + 1) * run +
         Workspace::padded(to_size(window_.max_outputs(rows) + 1) * sizeof(Pitch)) +
         Workspace::padded(scratch_bytes()) + sequences_bytes(streams, max_rows(rows), 1);
}

Sequences PitchFilter::step(Sequences x, States states, StepContext& context) const {
  if (x.channels() != 1) fail("pitch_filter", "x [samples, 1]", x.rows.shape().str());
  Workspace& workspace = context.workspace;
  const Workspace::Side side = workspace.side_of(x.rows.raw());
  const Workspace::Mark mark = workspace.mark();
  const auto runs = workspace.array<CausalWindow::Run>(side, x.lengths.size());
  const auto lengths = workspace.array<int>(side, x.lengths.size());
  const float* rows = x.rows.f32();
  int most = 0;
  for (std::size_t i = 0; i < x.lengths.size(); ++i) {
    const auto memory = workspace.array<float>(side, to_size(window_.run_rows(x.lengths[i])));
    runs[i] = window_.advance(rows, x.lengths[i], x.ends[i], states.of(static_cast<int>(i)), memory.data());
    lengths[i] = runs[i].outputs * options_.hop;
    most = std::max(most, runs[i].outputs);
    rows += x.lengths[i];
  }
  Sequences y = allocate_sequences(workspace, Workspace::other(side), lengths, x.ends, 1);
  const auto smoothed = workspace.array<float>(side, to_size(past_ + most * options_.hop + future_));
  const auto pitches = workspace.array<Pitch>(side, to_size(most + 1));
  const Scratch scratch = scratch_in(workspace.allocate(side, scratch_bytes()));
  float* out = y.rows.f32();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].outputs == 0) continue;
    const std::span<const float> sound(runs[i].rows, to_size(past_ + lengths[i] + future_));
    const std::span<Pitch> found = pitches.first(to_size(runs[i].outputs + 1));
    Pitch& last = *states.at(window_.state_bytes()).of<Pitch>(static_cast<int>(i));
    found.front() = last;
    smooth(sound, smoothed.data());
    track(smoothed, found, scratch);
    combine(sound, smoothed, found, out);
    last = found.back();
    out += lengths[i];
  }
  workspace.release(side, mark);
  return y;
}

}  // namespace tessera
