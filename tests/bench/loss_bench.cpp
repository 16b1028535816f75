// Milliseconds of one core for the losses of 16 s of audio at 16 kHz, forward and backward; `per_second` is
// the time for each second of audio. Below that, spectra of the same audio with a hop of a quarter window and
// their gradients: by the FFT, and as products with a matrix of cosines and sines.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "core/autograd/elementwise.h"
#include "core/gemm.h"
#include "core/random.h"
#include "core/spectral.h"
#include "tests/bench/machine.h"
#include "train/losses/spectral_loss.h"
#include "train/losses/waveform_loss.h"

namespace tessera {
namespace {

constexpr int kRate = 16000, kSeconds = 16;
constexpr std::int64_t kSamples = std::int64_t{kRate} * kSeconds;

Tensor noise(const Shape& shape, std::uint64_t seed) {
  Tensor x = Tensor::zeros(shape);
  Random random(seed);
  for (std::int64_t i = 0; i < x.size(); ++i) x.f32()[i] = 0.1f * random.normal();
  return x;
}

void count(benchmark::State& state) {
  state.counters["per_second"] = benchmark::Counter(
      kSeconds, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Loss(tape, output, target) of eight clips of two seconds; without gradients if `backward` is false.
template <class Loss>
void bench_loss(benchmark::State& state, const Loss& loss, bool backward) {
  ThreadPool pool;
  Tape tape(pool);
  const Shape clips = {8, kSamples / 8};
  const Tensor values = noise(clips, 1), target = noise(clips, 2);
  for (auto _ : state) {
    const Tensor output = backward ? parameter(values) : values;
    const Tensor y = loss(tape, output, target);
    if (backward) tape.backward(y);
    benchmark::DoNotOptimize(*y.f32());
  }
  count(state);
}

void bench_fft(benchmark::State& state, int window) {
  ThreadPool pool;
  Tape tape(pool);
  train::StftOptions options;
  options.window = window;
  options.hop = window / 4;
  const train::Stft stft(options);
  const Tensor values = noise({1, kSamples}, 1);
  const Tensor gradient = noise({1, stft.frames(kSamples), stft.bins(), 2}, 2);
  for (auto _ : state) {
    const Tensor x = parameter(values);
    tape.backward(stft(tape, x, train::SpectrumKind::complex), gradient);
    benchmark::DoNotOptimize(*gradient_of(x).f32());
  }
  count(state);
}

/// The two products alone: no padding, no sum of frames.
void bench_product(benchmark::State& state, int window) {
  ThreadPool pool;
  const int width = window + 2, hop = window / 4;
  const std::int64_t frames = 1 + (kSamples - window) / hop;
  const Tensor x = noise({kSamples}, 1), basis = noise({window, width}, 2);
  Tensor spectra = Tensor::zeros({frames, width}), back = Tensor::zeros({frames, window});
  const PackedMatrix forward = PackedMatrix::pack(basis.f32(), window, width, width, 1, WeightType::f32);
  const PackedMatrix backward = PackedMatrix::pack(basis.f32(), width, window, 1, width, WeightType::f32);
  std::vector<const float*> rows, gradients;
  for (std::int64_t f = 0; f < frames; ++f) {
    rows.push_back(x.f32() + f * hop);
    gradients.push_back(spectra.f32() + f * width);
  }
  GemmArgs there, back_again;
  there.rows = rows;
  there.weights = &forward;
  there.out = spectra.f32();
  there.out_stride = width;
  back_again.rows = gradients;
  back_again.weights = &backward;
  back_again.out = back.f32();
  back_again.out_stride = window;
  for (auto _ : state) {
    gemm(there, pool);
    gemm(back_again, pool);
    benchmark::ClobberMemory();
  }
  count(state);
}

template <class Function>
void add(const std::string& name, const Function& function) {
  benchmark::RegisterBenchmark(name.c_str(), function)->Unit(benchmark::kMillisecond);
}

template <class Loss>
void add_loss(const std::string& name, const Loss& loss) {
  for (const bool backward : {false, true}) {
    add(name + (backward ? "/forward_backward" : "/forward"),
        [=](benchmark::State& state) { bench_loss(state, loss, backward); });
  }
}

void register_all() {
  add_loss("log_mel", train::LogMelLoss());
  add_loss("stft", train::StftLoss());
  add_loss("waveform_l1", train::waveform_l1);
  add_loss("normalized_error", [](Tape& tape, const Tensor& output, const Tensor& target) {
    train::NormalizedErrorOptions options;
    options.pre_emphasis = 0.97f;
    return train::normalized_error(tape, output, target, options);
  });
  for (const int window : {64, 128, 256, 512, 1024, 2048}) {
    const std::string suffix = "/" + std::to_string(window);
    add("spectrum_fft" + suffix, [=](benchmark::State& state) { bench_fft(state, window); });
    add("spectrum_product" + suffix, [=](benchmark::State& state) { bench_product(state, window); });
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::register_all);
}
