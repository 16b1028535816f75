// The matrix product on the layers of a streaming speech codec (rows of one 80 ms frame, and of 16 streams at
// once), with weights that come from memory as they do when a whole model runs. Shares are of what one core
// can do at best (machine.h). TESSERA_CPU holds the kernels to one instruction set.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/gemm.h"
#include "tests/bench/machine.h"

namespace tessera {
namespace {

struct Layer {
  int rows, k, n;
  int step;  // floats from one row to the next: windows of a convolution overlap
};

constexpr Layer kLayers[] = {
    // encoder convolutions, transformer, down-sampling
    {1920, 7, 64, 1},
    {1920, 3 * 64, 32, 64},
    {1920, 32, 64, 32},
    {480, 8 * 64, 128, 256},
    {480, 3 * 128, 64, 128},
    {480, 64, 128, 64},
    {96, 10 * 128, 256, 640},
    {96, 3 * 256, 128, 256},
    {96, 128, 256, 128},
    {16, 12 * 256, 512, 1536},
    {16, 3 * 512, 256, 512},
    {16, 256, 512, 256},
    {2, 16 * 512, 1024, 4096},
    {2, 3 * 1024, 512, 1024},
    {2, 512, 1536, 512},
    {2, 512, 512, 512},
    {2, 512, 2048, 512},
    {2, 2048, 512, 2048},
    {1, 2048, 512, 2048},
    // decoder
    {2, 7 * 512, 1024, 512},
    {2, 2 * 1024, 8 * 512, 1024},
    {16, 2 * 512, 6 * 256, 512},
    {96, 2 * 256, 5 * 128, 256},
    {480, 2 * 128, 4 * 64, 128},
    {1920, 3 * 64, 1, 64},
};

void run(benchmark::State& state, const Layer& layer, WeightType type) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto filled = [&](int rows, int columns) {
    std::vector<float> v(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (float& x : v) x = uniform(random);
    return v;
  };
  const std::vector<float> x = filled(1, layer.rows * layer.step + layer.k), w = filled(layer.k, layer.n);
  std::vector<float> out(static_cast<std::size_t>(layer.rows) * static_cast<std::size_t>(layer.n));
  std::vector<const float*> rows;
  for (int i = 0; i < layer.rows; ++i) rows.push_back(x.data() + static_cast<std::ptrdiff_t>(i) * layer.step);
  // Enough copies that each comes from memory again; few when they are small beside the rows.
  constexpr double kBeyondCaches = 96e6, kMostCopies = 64;
  std::vector<PackedMatrix> copies;
  copies.push_back(PackedMatrix::pack(w.data(), layer.k, layer.n, layer.n, 1, type));
  const double wanted = std::min(kBeyondCaches / static_cast<double>(copies[0].bytes()), kMostCopies);
  while (static_cast<double>(copies.size()) < wanted) {
    copies.push_back(PackedMatrix::pack(w.data(), layer.k, layer.n, layer.n, 1, type));
  }
  ThreadPool pool(1);
  std::size_t next = 0;
  for (auto _ : state) {
    gemm({.rows = rows, .weights = &copies[next], .out = out.data(), .out_stride = layer.n}, pool);
    next = (next + 1) % copies.size();
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const MachinePeak& peak = machine_peak();
  const double operations = 2.0 * layer.rows * layer.k * layer.n;
  const double bytes = static_cast<double>(copies[0].bytes());
  state.counters["GFLOP/s"] = Counter(operations / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = Counter(operations / peak.flops, Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] = Counter(bytes / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["of_bandwidth"] = Counter(bytes / peak.bytes_per_second, Counter::kIsIterationInvariantRate);
}

void register_all() {
  constexpr std::pair<WeightType, const char*> kTypes[] = {
      {WeightType::f32, "f32"}, {WeightType::bf16, "bf16"}, {WeightType::i8, "i8"}};
  for (const auto& [type, type_name] : kTypes) {
    for (const int streams : {1, 16}) {
      for (Layer layer : kLayers) {
        layer.rows *= streams;
        const std::string name = std::string(type_name) + "/" + std::to_string(layer.rows) + "x" +
                                 std::to_string(layer.k) + "x" + std::to_string(layer.n);
        benchmark::RegisterBenchmark(name.c_str(), [=, t = type](benchmark::State& state) {
          run(state, layer, t);
        })->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::register_all);
}
