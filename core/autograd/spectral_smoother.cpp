#include "core/autograd/spectral_smoother.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/autograd/op.h"

namespace tessera::ops {
namespace {

// Of one clip.
struct Analysis {
  std::vector<float> spectra = {};
  std::vector<double> logs = {};
};

}  // namespace

Tensor spectral_smoother(Tape& tape, const Tensor& x,
                         const std::shared_ptr<const SpectralSmoother>& smoother) {
  expect_f32("spectral_smoother", "x", x);
  const int hop = smoother->options().hop;
  if (x.shape().rank() != 3 || x.dim(2) != 1 || x.dim(1) % hop) {
    fail("spectral_smoother", "x [B, a multiple of " + std::to_string(hop) + ", 1]", x.shape().str());
  }
  const std::int64_t clips = x.dim(0), length = x.dim(1);
  const std::size_t hops = static_cast<std::size_t>(length / hop);
  // A clip with the silence before it.
  const std::size_t samples = static_cast<std::size_t>(smoother->past() + smoother->delay() + length);
  Tensor y = tape.make(x.shape());
  std::vector<Analysis> analyses(static_cast<std::size_t>(clips));
  tape.pool().parallel_for(static_cast<int>(clips), [&, from = x.f32(), to = y.f32()](int clip) {
    std::vector<float> sound(samples), changes(smoother->changed(hops) * smoother->spectrum_size());
    std::copy_n(from + clip * length, length, sound.end() - length);
    Analysis& own = analyses[static_cast<std::size_t>(clip)];
    own.spectra.resize(smoother->windows(hops) * smoother->spectrum_size());
    own.logs.resize(own.spectra.size() / 2);
    smoother->analyze(sound, own.spectra.data(), own.logs.data());
    smoother->smooth(own.spectra.data(), own.logs.data(), hops, changes.data());
    smoother->combine(sound, changes.data(), to + clip * length);
  });
  return tape.record(
      y, {x},
      [&tape, shape = x.shape(), smoother, analyses = std::move(analyses), length, hops, samples](
          const Tensor& g, InputGradients& inputs) {
        Tensor dx = tape.make(shape);
        tape.pool().parallel_for(static_cast<int>(analyses.size()), [&, from = g.f32(),
                                                                     to = dx.f32()](int clip) {
          std::vector<float> dsound(samples), dchanges(smoother->changed(hops) * smoother->spectrum_size());
          const Analysis& own = analyses[static_cast<std::size_t>(clip)];
          smoother->combine_gradient(from + clip * length, hops, dsound, dchanges.data());
          smoother->analyze_gradient(own.spectra.data(), own.logs.data(), dchanges.data(), hops, dsound);
          std::copy_n(dsound.end() - length, length, to + clip * length);
        });
        inputs.add(0, dx);
      });
}

}  // namespace tessera::ops
