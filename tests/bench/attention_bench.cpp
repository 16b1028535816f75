// Attention, RoPE and a whole transformer layer at the sizes of Mimi: 512 channels, 8 heads of 64, window
// 250, feed-forward 2048; 2 rows are one streaming step, 64 and more a file. One thread.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "tests/bench/machine.h"
#include "transformer/transformer_layer.h"

namespace tessera {
namespace {

constexpr AttentionOptions kMimi = {.heads = 8, .kv_heads = 8, .head_dim = 64, .window = 250};

// Values in (-1, 1) without a pattern that matters.
std::vector<float> values(std::size_t count) {
  std::vector<float> x(count);
  std::uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return x;
}

void attention_step(benchmark::State& bench) {
  const int rows = static_cast<int>(bench.range(0));
  Tensor state = Tensor::zeros({static_cast<std::int64_t>(attention_state_bytes(kMimi))}, DType::u8);
  std::byte* block = state.as<std::byte>();
  const std::vector<float> qkv = values(static_cast<std::size_t>(rows * kMimi.qkv_channels()));
  std::vector<float> out(static_cast<std::size_t>(rows * kMimi.out_channels()));
  Workspace workspace(attention_workspace_bytes(kMimi, 1));
  ThreadPool pool(1);
  StepContext context{workspace, pool};
  set_attention_position(block, 1000);
  for (auto _ : bench) {
    attention(kMimi, qkv.data(), {&rows, 1}, States({&block, 1}), out.data(), Workspace::Side::low, context);
    benchmark::DoNotOptimize(out.data());
  }
  bench.SetItemsProcessed(bench.iterations() * rows);
}
BENCHMARK(attention_step)->Arg(1)->Arg(2)->Arg(64)->Arg(750);

void rope_rotation(benchmark::State& bench) {
  const Rope rope(64, 10000, RopeLayout::half);
  std::vector<float> rotation(64);
  std::int64_t position = 1000;
  for (auto _ : bench) {
    rope.rotation(position++, rotation.data());
    benchmark::DoNotOptimize(rotation.data());
  }
}
BENCHMARK(rope_rotation);

void layer_step(benchmark::State& bench) {
  const int rows = static_cast<int>(bench.range(0));
  const TransformerOptions options = {.channels = 512, .hidden = 2048, .attention = kMimi};
  const auto linear = [](int k, int n) {
    std::vector<float> weight = values(static_cast<std::size_t>(k * n));
    for (float& w : weight) w *= 0.05f;
    return LinearWeights{PackedMatrix::pack(weight.data(), k, n, n, 1, WeightType::f32), {}};
  };
  const NormWeights norm = {std::vector<float>(512, 1.0f), std::vector<float>(512, 0.0f)};
  const TransformerLayer layer(options, {norm, linear(512, kMimi.qkv_channels()), linear(512, 512), norm,
                                         linear(512, 2048), linear(2048, 512)});
  Tensor state = Tensor::zeros({static_cast<std::int64_t>(layer.state_bytes())}, DType::u8);
  std::byte* block = state.as<std::byte>();
  Workspace workspace(layer.workspace_bytes(1, rows));
  ThreadPool pool(1);
  StepContext context{workspace, pool};
  set_attention_position(block, 1000);
  const std::vector<float> input = values(static_cast<std::size_t>(rows * 512));
  std::vector<float> x;
  const bool end = false;
  for (auto _ : bench) {
    x = input;
    layer.step({Tensor::view(x.data(), {rows, 512}), {&rows, 1}, {&end, 1}}, States({&block, 1}), context);
    benchmark::DoNotOptimize(x.data());
  }
  bench.SetItemsProcessed(bench.iterations() * rows);
}
BENCHMARK(layer_step)->Arg(1)->Arg(2)->Arg(64)->Arg(750)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, [] {});
}
