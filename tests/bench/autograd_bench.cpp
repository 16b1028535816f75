// What operations with gradients move per second, on one thread and on all, beside what one core reads from
// memory: bytes of inputs and outputs, each counted once.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "core/autograd/elementwise.h"
#include "core/autograd/rearrange.h"
#include "core/autograd/reduce.h"
#include "core/random.h"
#include "tests/bench/machine.h"

namespace tessera {
namespace {

constexpr std::int64_t kRows = 8192, kChannels = 512, kCount = kRows * kChannels;

Tensor noise() {
  Tensor x = Tensor::zeros({kRows, kChannels});
  Random random(1);
  for (std::int64_t i = 0; i < kCount; ++i) x.f32()[i] = random.uniform() * 2.0f - 1.0f;
  return x;
}

/// `passes` counts the tensors of kCount elements that are read and written.
void add_bench(const std::string& name, int passes, const std::function<void(Tape&, const Tensor& x)>& run) {
  for (const int threads : {1, 0}) {
    benchmark::RegisterBenchmark((name + (threads ? "/one_thread" : "/all_threads")).c_str(),
                                 [=](benchmark::State& state) {
                                   ThreadPool pool(threads);
                                   Tape tape(pool);
                                   const Tensor x = noise();
                                   for (auto _ : state) run(tape, x);
                                   const double bytes = static_cast<double>(passes * kCount) * sizeof(float);
                                   const double moved = bytes * static_cast<double>(state.iterations());
                                   state.counters["GB/s"] =
                                       benchmark::Counter(moved * 1e-9, benchmark::Counter::kIsRate);
                                   state.counters["of_memory"] = benchmark::Counter(
                                       moved / machine_peak().bytes_per_second, benchmark::Counter::kIsRate);
                                 })
        ->UseRealTime();
  }
}

void add_benches() {
  add_bench("add", 3, [](Tape& tape, const Tensor& x) { ops::add(tape, x, x); });
  add_bench("elu", 2, [](Tape& tape, const Tensor& x) { ops::activate(tape, Activation::elu, x); });
  // y from x, then dx from y and dy
  add_bench("elu_forward_backward", 5, [](Tape& tape, const Tensor& x) {
    const Tensor p = parameter(x);
    tape.backward(ops::activate(tape, Activation::elu, p), x);
  });
  add_bench("gelu_forward_backward", 5, [](Tape& tape, const Tensor& x) {
    const Tensor p = parameter(x);
    tape.backward(ops::activate(tape, Activation::gelu, p), x);
  });
  add_bench("sum", 1, [](Tape& tape, const Tensor& x) { ops::sum(tape, x); });
  add_bench("sum_rows", 1, [](Tape& tape, const Tensor& x) { ops::sum_rows(tape, x); });
  add_bench("layer_norm_forward_backward", 6, [](Tape& tape, const Tensor& x) {
    const Tensor p = parameter(x), weight = Tensor::zeros({kChannels});
    tape.backward(ops::layer_norm(tape, p, weight, weight), x);
  });
  add_bench("permute", 2, [](Tape& tape, const Tensor& x) { ops::permute(tape, x, std::array{1, 0}); });
  add_bench("permute_heads", 2, [](Tape& tape, const Tensor& x) {
    ops::permute(tape, x.reshaped({8, 1024, 8, 64}), std::array{0, 2, 1, 3});
  });
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::add_benches);
}
