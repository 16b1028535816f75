// Elements per second of the element-wise functions, norms, depthwise convolution and argmax on values as
// speech gives them, and on values of 1e-30, which must not be slower.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/activation.h"
#include "core/depthwise.h"
#include "core/lstm.h"
#include "core/norm.h"
#include "core/search.h"
#include "tests/bench/machine.h"

namespace tessera {
namespace {

constexpr int kRows = 64, kChannels = 512;
constexpr std::size_t kCount = std::size_t{kRows} * kChannels;

std::vector<float> values(std::size_t count, float scale) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(count);
  for (float& value : x) value = normal(generator);
  return x;
}

template <class Run>
void measure(benchmark::State& state, std::size_t elements, Run& run) {
  for (auto _ : state) {
    run();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(elements));
}

void bench_scale(const std::string& suffix, float scale) {
  const auto add_bench = [&](const std::string& name, std::size_t elements, auto run) {
    benchmark::RegisterBenchmark((name + suffix).c_str(),
                                 [=](benchmark::State& state) mutable { measure(state, elements, run); });
  };
  const std::vector<float> x = values(kCount, scale), parameters = values(4 * kChannels, 1.0f);
  std::vector<float> y(kCount);
  const std::pair<const char*, Activation> functions[] = {
      {"elu", Activation::elu},
      {"gelu", Activation::gelu},
      {"gelu_tanh", Activation::gelu_tanh},
      {"silu", Activation::silu},
      {"relu", Activation::relu},
      {"tanh", Activation::tanh},
      {"sigmoid", Activation::sigmoid},
      {"exp", Activation::exp},
      {"sin", Activation::sin},
      {"erf", Activation::erf},
      {"log", Activation::log},
      {"signed_sqrt", Activation::signed_sqrt},
      {"signed_square", Activation::signed_square},
  };
  for (const auto& [name, function] : functions) {
    add_bench(name, kCount, [x, y, f = function]() mutable { activate(f, x.data(), y.data(), kCount); });
  }
  add_bench("snake", kCount,
            [=]() mutable { snake(x.data(), parameters.data(), y.data(), kRows, kChannels); });
  add_bench("layer_norm", kCount, [=]() mutable {
    layer_norm(x.data(), parameters.data(), parameters.data(), 1e-5f, y.data(), kRows, kChannels);
  });
  add_bench("rms_norm", kCount,
            [=]() mutable { rms_norm(x.data(), parameters.data(), 1e-8f, y.data(), kRows, kChannels); });
  add_bench("softmax", kCount, [=]() mutable {
    y = x;
    softmax(y.data(), kRows, kChannels);
  });
  add_bench("lstm_cell", kChannels,
            [=]() mutable { lstm_cell(x.data(), y.data(), y.data() + kChannels, kChannels); });
  constexpr int kTaps = 4;
  add_bench("depthwise_4_taps", kCount - (kTaps - 1) * kChannels, [=]() mutable {
    depthwise_conv(x.data(), parameters.data(), nullptr, kTaps, 1, 1, y.data(), kRows - kTaps + 1, kChannels);
  });
  add_bench("argmax_2048", kCount, [x, indices = std::vector<std::int32_t>(kCount / 2048)]() mutable {
    argmax_rows(x.data(), indices.size(), 2048, 2048, indices.data());
  });
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, [] {
    tessera::bench_scale("", 1.0f);
    tessera::bench_scale("_quiet", 1e-30f);
  });
}
