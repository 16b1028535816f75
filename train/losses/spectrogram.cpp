#include "train/losses/spectrogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/spectral.h"

namespace tessera::train {
namespace {

constexpr std::int64_t kGroup = FrameDft::kFrames;

struct Frames {
  std::int64_t items = 0;    // clips
  std::int64_t samples = 0;  // of a clip, padding included
  std::int64_t count = 0;    // frames of a clip
  std::int64_t hop = 0;
  std::int64_t groups() const { return (count + kGroup - 1) / kGroup; }
};

using InRows = std::array<const float*, FrameDft::kFrames>;
using OutRows = std::array<float*, FrameDft::kFrames>;

// body(item, first frame, frames of the group, scratch, spare row) for every group of frames of every clip.
// Frames do not depend on one another, so how groups are shared out changes nothing.
template <class Body>
void for_groups(Tape& tape, const Frames& frames, const FrameDft& dft, const Body& body) {
  const std::int64_t total = frames.items * frames.groups();
  const std::int64_t parts = std::min<std::int64_t>(total, 4 * tape.pool().threads());
  const auto scratch = static_cast<std::int64_t>(dft.scratch_floats());
  const std::int64_t room = scratch + (2 * dft.bins() + 15) / 16 * 16;
  Tensor work = tape.make({parts, room});
  float* base = work.f32();
  tape.pool().parallel_for(static_cast<int>(parts), [&](int part) {
    float* own = base + part * room;
    for (std::int64_t g = total * part / parts; g < total * (part + 1) / parts; ++g) {
      const std::int64_t first = g % frames.groups() * kGroup;
      body(g / frames.groups(), first, std::min(kGroup, frames.count - first), own, own + scratch);
    }
  });
}

// Row pointers of a group; beyond the last frame the last one is read again and what is written goes to
// `spare`.
InRows in_rows(const float* first, std::int64_t step, std::int64_t count) {
  InRows rows{};
  for (std::int64_t i = 0; i < kGroup; ++i) {
    rows[static_cast<std::size_t>(i)] = first + std::min(i, count - 1) * step;
  }
  return rows;
}
OutRows out_rows(float* first, std::int64_t step, std::int64_t count, float* spare) {
  OutRows rows{};
  for (std::int64_t i = 0; i < kGroup; ++i) {
    rows[static_cast<std::size_t>(i)] = i < count ? first + i * step : spare;
  }
  return rows;
}

// y [items, samples]: every sample the sum of the frames [items, count, length] that hold it, in order.
void overlap_add(Tape& tape, const Frames& frames, const Tensor& x, std::int64_t length, Tensor& y) {
  const std::int64_t hop = frames.hop;
  const std::int64_t hops = (frames.samples + hop - 1) / hop;
  const std::int64_t chunk = std::max<std::int64_t>(1, 4096 / hop);  // hops of a task
  const std::int64_t chunks = (hops + chunk - 1) / chunk;
  const float* in = x.f32();
  float* out = y.f32();
  tape.pool().parallel_for(static_cast<int>(frames.items * chunks), [&](int task) {
    const std::int64_t item = task / chunks;
    for (std::int64_t h = task % chunks * chunk; h < std::min(hops, (task % chunks + 1) * chunk); ++h) {
      const std::int64_t begin = h * hop, size = std::min(hop, frames.samples - begin);
      float* to = out + item * frames.samples + begin;
      std::fill_n(to, size, 0.0f);
      const std::int64_t first = std::max<std::int64_t>(0, h - (length - 1) / hop);
      for (std::int64_t f = first; f <= std::min(h, frames.count - 1); ++f) {
        const float* from = in + (item * frames.count + f) * length + (begin - f * hop);
        const std::int64_t shared = std::min(size, length - (begin - f * hop));
        for (std::int64_t i = 0; i < shared; ++i) to[i] += from[i];
      }
    }
  });
}

Tensor transform(Tape& tape, const Tensor& padded, const Frames& frames, SpectrumKind kind,
                 const std::shared_ptr<const FrameDft>& dft) {
  const std::int64_t width = dft->values(kind);
  Tensor y = kind == SpectrumKind::complex ? tape.make({frames.items, frames.count, dft->bins(), 2})
                                           : tape.make({frames.items, frames.count, width});
  const float* in = padded.f32();
  float* out = y.f32();
  for_groups(tape, frames, *dft,
             [&](std::int64_t item, std::int64_t first, std::int64_t count, float* scratch, float* spare) {
               const InRows from =
                   in_rows(in + item * frames.samples + first * frames.hop, frames.hop, count);
               const OutRows to = out_rows(out + (item * frames.count + first) * width, width, count, spare);
               dft->forward(from.data(), kind, to.data(), scratch);
             });
  return y;
}

Tensor transform_gradient(Tape& tape, const Tensor& padded, const Frames& frames, SpectrumKind kind,
                          const FrameDft& dft, const Tensor& gradient) {
  const std::int64_t width = dft.values(kind), length = dft.length();
  Tensor by_frame = tape.make({frames.items, frames.count, length});
  const float *in = padded.f32(), *upstream = gradient.f32();
  float* out = by_frame.f32();
  for_groups(tape, frames, dft,
             [&](std::int64_t item, std::int64_t first, std::int64_t count, float* scratch, float* spare) {
               const std::int64_t row = item * frames.count + first;
               const InRows from =
                   in_rows(in + item * frames.samples + first * frames.hop, frames.hop, count);
               const InRows gradients = in_rows(upstream + row * width, width, count);
               const OutRows to = out_rows(out + row * length, length, count, spare);
               dft.backward(from.data(), kind, gradients.data(), to.data(), scratch);
             });
  Tensor result = tape.make({frames.items, frames.samples});
  overlap_add(tape, frames, by_frame, length, result);
  return result;
}

}  // namespace

Stft::Stft(const StftOptions& options) : options_(options) {
  if (options.window < 2 || options.window > 16384 || options.window % 2) {
    fail("stft", "an even window from 2 to 16384", std::to_string(options.window));
  }
  if (options.hop < 1) fail("stft", "a hop of at least 1", std::to_string(options.hop));
  std::vector<float> window = hann_window(options.window);
  if (options.normalized) {
    double energy = 0;
    for (const float w : window) energy += double{w} * w;
    for (float& w : window) w = static_cast<float>(w / std::sqrt(energy));
  }
  dft_ = std::make_shared<const FrameDft>(window);
}

Tensor Stft::operator()(Tape& tape, const Tensor& x, SpectrumKind kind) const {
  const std::int64_t half = options_.window / 2;
  const bool reflect = options_.padding == ops::Padding::reflect;
  if (x.dtype() != DType::f32 || x.shape().rank() != 2 || x.dim(0) < 1) {
    fail("stft", "x [B, T] of f32", x.shape().str() + " of " + name_of(x.dtype()));
  }
  if (x.dim(1) < (reflect ? half + 1 : 1)) {
    fail("stft", "at least " + std::to_string(reflect ? half + 1 : 1) + " samples", std::to_string(x.dim(1)));
  }
  const Tensor padded = ops::pad(tape, x, 1, half, half, options_.padding);
  Frames frames;
  frames.items = x.dim(0);
  frames.samples = padded.dim(1);
  frames.count = this->frames(x.dim(1));
  frames.hop = options_.hop;
  return tape.record(transform(tape, padded, frames, kind, dft_), {padded},
                     [&tape, values = padded.detached(), frames, kind, dft = dft_](const Tensor& gradient,
                                                                                   InputGradients& inputs) {
                       inputs.add(0, transform_gradient(tape, values, frames, kind, *dft, gradient));
                     });
}

}  // namespace tessera::train

namespace tessera::ops {

Tensor stft(Tape& tape, const Tensor& x, int window, int hop) {
  train::StftOptions options;
  options.window = window;
  options.hop = hop;
  return train::Stft(options)(tape, x, train::SpectrumKind::complex);
}

}  // namespace tessera::ops
