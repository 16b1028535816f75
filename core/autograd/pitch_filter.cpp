#include "core/autograd/pitch_filter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/autograd/op.h"

namespace tessera::ops {
namespace {

using Pitches = std::vector<Pitch>;

// A clip with the silence before it that the filter sees.
std::size_t room(const PitchFilter& filter, std::int64_t length) {
  return static_cast<std::size_t>(filter.past() + filter.delay() + length);
}

}  // namespace

Tensor pitch_filter(Tape& tape, const Tensor& x, const std::shared_ptr<const PitchFilter>& filter) {
  expect_f32("pitch_filter", "x", x);
  const int hop = filter->options().hop;
  if (x.shape().rank() != 3 || x.dim(2) != 1 || x.dim(1) % hop) {
    fail("pitch_filter", "x [B, a multiple of " + std::to_string(hop) + ", 1]", x.shape().str());
  }
  const std::int64_t clips = x.dim(0), length = x.dim(1);
  const std::size_t samples = room(*filter, length);
  Tensor y = tape.make(x.shape());
  std::vector<Pitches> pitches(static_cast<std::size_t>(clips));
  tape.pool().parallel_for(static_cast<int>(clips), [&, from = x.f32(), to = y.f32()](int clip) {
    std::vector<float> sound(samples), smoothed(samples);
    std::copy_n(from + clip * length, length, sound.end() - length);
    std::vector<double> memory(filter->scratch_bytes() / sizeof(double) + 1);
    Pitches& found = pitches[static_cast<std::size_t>(clip)];
    found.resize(static_cast<std::size_t>(length / hop) + 1);
    filter->smooth(sound, smoothed.data());
    filter->track(smoothed, found, filter->scratch_in(memory.data()));
    filter->combine(sound, smoothed, found, to + clip * length);
  });
  return tape.record(y, {x},
                     [&tape, shape = x.shape(), filter, pitches = std::move(pitches), length, samples](
                         const Tensor& g, InputGradients& inputs) {
                       Tensor dx = tape.make(shape);
                       tape.pool().parallel_for(
                           static_cast<int>(pitches.size()), [&, from = g.f32(), to = dx.f32()](int clip) {
                             std::vector<float> dsound(samples), dsmoothed(samples);
                             const Pitches& found = pitches[static_cast<std::size_t>(clip)];
                             filter->combine_gradient(from + clip * length, found, dsound, dsmoothed);
                             filter->smooth_gradient(dsmoothed, dsound);
                             std::copy_n(dsound.end() - length, length, to + clip * length);
                           });
                       inputs.add(0, dx);
                     });
}

}  // namespace tessera::ops
