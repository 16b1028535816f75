// Encoding with a residual quantizer of 16 codebooks of 1024 x 128, nearest codewords (one path) and
// several paths; 1 row is one streaming step, 64 and more a file. `x_peak` is the share of what one core can
// do of the products alone. One thread.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "quantizers/residual_vq.h"
#include "tests/bench/machine.h"
#include "tests/random.h"

namespace tessera {
namespace {

constexpr int kCodebooks = 16, kSize = 1024, kDimension = 128;

void encode(benchmark::State& bench, int rows, int paths) {
  std::vector<Codebook> codebooks;
  for (int i = 0; i < kCodebooks; ++i) {
    codebooks.emplace_back(test::random_floats(kSize * kDimension, static_cast<std::uint64_t>(i)), kSize,
                           kDimension, WeightType::f32);
  }
  const ResidualVq quantizer(std::move(codebooks), paths);
  const std::vector<float> latents =
      test::random_floats(static_cast<std::size_t>(rows) * kDimension, 99, 4.0f);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows) * kCodebooks);
  Workspace workspace(quantizer.workspace_bytes(rows));
  ThreadPool pool(1);
  StepContext context{workspace, pool};
  for (auto _ : bench) {
    quantizer.encode(latents.data(), rows, kCodebooks, tokens.data(), context);
    benchmark::DoNotOptimize(tokens.data());
  }
  bench.SetItemsProcessed(bench.iterations() * rows);
  const double searched = 2 + (kCodebooks - 2.0) * paths;  // residuals of a row
  const double operations = 2.0 * rows * searched * kSize * kDimension;
  bench.counters["x_peak"] =
      benchmark::Counter(operations / machine_peak().flops, benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const int rows : {1, 64, 500}) {
    for (const int paths : {1, 4, 8}) {
      const std::string name = "residual_vq/rows:" + std::to_string(rows) + "/paths:" + std::to_string(paths);
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        encode(state, rows, paths);
      })->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::register_all);
}
