// The products of training on the convolutions of a codec and of its discriminators: output, input gradient
// and weight gradient, packing and padding included, in f32 and bf16, with one and two threads. of_peak is
// the share of the f32 multiply-adds that the threads' cores can do at best (machine.h).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/conv.h"
#include "tests/bench/machine.h"
#include "tests/random.h"

namespace tessera {
namespace {

struct Problem {
  const char* name;
  Shape x, w;
  ops::Conv2dOptions options = {};
};

enum class Product { output, input_gradient, weight_gradient };

std::vector<Problem> problems() {
  ops::Conv2dOptions causal, first, spectrogram, same;
  causal.pad_left = 2;
  first.pad_left = 6;
  spectrogram.pad_top = spectrogram.pad_bottom = 1;
  spectrogram.pad_left = spectrogram.pad_right = 4;
  same = spectrogram;
  spectrogram.stride_w = 2;
  return {{"512to512k3/1600", {8, 1, 200, 512}, {1, 3, 512, 512}, causal},
          {"512to512k3/4800", {8, 1, 600, 512}, {1, 3, 512, 512}, causal},
          {"512to512k1/1600", {8, 1, 200, 512}, {1, 1, 512, 512}},
          {"320to512k1/1600", {8, 1, 200, 320}, {1, 1, 320, 512}},
          {"1to64k7/96000", {4, 1, 24000, 1}, {1, 7, 1, 64}, first},
          {"64to32k3/96000", {4, 1, 24000, 64}, {1, 3, 64, 32}, causal},
          {"2to32k3x9s2", {8, 100, 257, 2}, {3, 9, 2, 32}, spectrogram},
          {"32to32k3x9s2", {8, 100, 129, 32}, {3, 9, 32, 32}, spectrogram},
          {"32to32k3x9", {8, 100, 33, 32}, {3, 9, 32, 32}, same},
          {"32to1k3x9", {8, 100, 33, 32}, {3, 9, 32, 1}, same}};
}

Tensor random_tensor(const Shape& shape, std::uint64_t seed) {
  Tensor t = Tensor::zeros(shape);
  const std::vector<float> values = test::random_floats(static_cast<std::size_t>(t.size()), seed);
  std::copy(values.begin(), values.end(), t.f32());
  return t;
}

void run(benchmark::State& state, const Problem& p, Product product, Precision precision, int threads) {
  ThreadPool pool(threads);
  Tape tape(pool, precision);
  const Tensor x = random_tensor(p.x, 1), w = random_tensor(p.w, 2);
  const Tensor y = ops::conv2d(tape, x, w, {}, p.options);
  const auto multiply = [&] {
    switch (product) {
      case Product::output:
        return ops::conv2d(tape, x, w, {}, p.options);
      case Product::input_gradient:
        return ops::conv2d_input_gradient(tape, y, w, p.x, p.options);
      default:
        return ops::conv2d_weight_gradient(tape, y, x, p.w, p.options);
    }
  };
  multiply();  // takes the memory that the next ones use again
  for (auto _ : state) benchmark::DoNotOptimize(multiply().raw());
  using benchmark::Counter;
  const double operations = 2.0 * static_cast<double>(y.size()) * static_cast<double>(w.size() / p.w[3]);
  state.counters["GFLOP/s"] = Counter(operations / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] =
      Counter(operations / (machine_peak().flops * threads), Counter::kIsIterationInvariantRate);
}

void register_all() {
  constexpr std::pair<Precision, const char*> kPrecisions[] = {{Precision::f32, "f32"},
                                                               {Precision::bf16, "bf16"}};
  constexpr std::pair<Product, const char*> kProducts[] = {{Product::output, "output"},
                                                           {Product::input_gradient, "input_gradient"},
                                                           {Product::weight_gradient, "weight_gradient"}};
  for (const Problem& problem : problems()) {
    for (const auto& [precision, precision_name] : kPrecisions) {
      if (precision == Precision::bf16 && !ops::bf16_products()) continue;
      for (const auto& [product, product_name] : kProducts) {
        for (const int threads : {1, 2}) {
          const std::string name = std::string(problem.name) + "/" + precision_name + "/" + product_name +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(),
                                       [=, a = product, b = precision](benchmark::State& state) {
                                         run(state, problem, a, b, threads);
                                       })
              ->Unit(benchmark::kMicrosecond)
              ->UseRealTime();
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::register_all);
}
