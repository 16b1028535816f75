// The two ceilings of a roofline for one core: fused multiply-adds in registers, and a linear read of a
// buffer far larger than the caches. Each is the best of several short runs, so that other work on the
// machine disturbs it least.
#include "tests/bench/machine.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "core/cpu.h"
#include "core/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/machine.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target
#include "core/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
constexpr int kChains = 12;  // latency of 4 or 5 cycles, two per cycle

}  // namespace

// Runs `steps` of kChains independent multiply-adds; returns how many operations that was. `sink` keeps them
// alive.
double MultiplyAdds(std::int64_t steps, float* sink) {
  const D d;
  hn::Vec<D> sum[kChains];
  for (int c = 0; c < kChains; ++c) sum[c] = hn::Set(d, static_cast<float>(c));
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  for (std::int64_t s = 0; s < steps; ++s) {
    for (int c = 0; c < kChains; ++c) sum[c] = Fma(d, sum[c], a, b);
  }
  for (int c = 1; c < kChains; ++c) sum[0] = hn::Add(sum[0], sum[c]);
  *sink += hn::GetLane(sum[0]);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

// Reads all `count` values, which must be a multiple of 8 vectors.
void ReadAll(const float* x, std::size_t count, float* sink) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  constexpr std::size_t kStep = hn::MaxLanes(D());
  constexpr int kVectors = 8;
  hn::Vec<decltype(du)> bits[kVectors];
  for (auto& b : bits) b = hn::Zero(du);
  for (std::size_t i = 0; i + kVectors * kStep <= count; i += kVectors * kStep) {
    for (int v = 0; v < kVectors; ++v) {
      bits[v] = hn::Or(bits[v], hn::BitCast(du, hn::LoadU(d, x + i + static_cast<std::size_t>(v) * kStep)));
    }
  }
  for (int v = 1; v < kVectors; ++v) bits[0] = hn::Or(bits[0], bits[v]);
  *sink += hn::GetLane(hn::BitCast(d, bits[0]));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(ReadAll);

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MachinePeak measure() {
  MachinePeak peak;
  volatile float keep = 0;
  float sink = 0;
  constexpr int kRuns = 40;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const double operations = HWY_DYNAMIC_DISPATCH(MultiplyAdds)(200000, &sink);
    peak.flops = std::max(peak.flops, operations / seconds_since(start));
  }
  // Parts of 4 MB, so that one undisturbed stretch is enough for the best.
  constexpr std::size_t kPart = std::size_t{1} << 20, kParts = 64;
  const std::vector<float> buffer(kPart * kParts, 1.0f);
  for (int pass = 0; pass < 4; ++pass) {
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto start = std::chrono::steady_clock::now();
      HWY_DYNAMIC_DISPATCH(ReadAll)(buffer.data() + part * kPart, kPart, &sink);
      peak.bytes_per_second = std::max(peak.bytes_per_second, kPart * sizeof(float) / seconds_since(start));
    }
  }
  keep = sink;
  static_cast<void>(keep);
  return peak;
}

}  // namespace

const MachinePeak& machine_peak() {
  static const MachinePeak peak = measure();
  return peak;
}

int run_benchmarks(int argc, char** argv, void (*register_all)()) {
  if (const auto set = set_cpu_target_from_environment(); !set) {
    std::fprintf(stderr, "%s\n", set.error().message.c_str());
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const MachinePeak& peak = machine_peak();
  std::fprintf(stderr, "%s: one core computes %.1f GFLOP/s and reads %.1f GB/s\n", cpu_target().c_str(),
               peak.flops / 1e9, peak.bytes_per_second / 1e9);
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace tessera
#endif
