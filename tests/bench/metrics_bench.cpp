// Milliseconds of one core for each quality metric of 10 s of sound at the rate it was made for (16 kHz if it
// takes any); `per_second` is the time for each second. Metrics with model files are timed if the variable
// TESSERA_METRICS names the folder that holds visqol/ and dnsmos/.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "metrics/alignment.h"
#include "metrics/metric_suite.h"
#include "tests/bench/machine.h"
#include "tests/random.h"

namespace tessera {
namespace {

constexpr int kSeconds = 10;

void count(benchmark::State& state) {
  state.counters["per_second"] = benchmark::Counter(
      kSeconds, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

struct Sounds {
  std::vector<float> reference = {}, degraded = {};
};
Sounds sounds(int rate_hz) {
  const std::size_t samples = static_cast<std::size_t>(rate_hz) * kSeconds;
  Sounds pair;
  pair.reference = test::test_sound(samples);
  pair.degraded = test::random_floats(samples, 2, 0.05f);
  for (std::size_t i = 0; i < samples; ++i) pair.degraded[i] += pair.reference[i];
  return pair;
}

void bench_metric(benchmark::State& state, const metrics::MetricSuite& suite, int rate_hz) {
  const Sounds pair = sounds(rate_hz);
  ThreadPool pool;
  for (auto _ : state) {
    const auto report = suite.compute(pair.reference, pair.degraded, rate_hz, pool);
    if (!report || report->scores.empty()) return state.SkipWithError("no score");
    benchmark::DoNotOptimize(report->scores.front().value);
  }
  count(state);
}

void bench_delay(benchmark::State& state) {
  const Sounds pair = sounds(16000);
  for (auto _ : state) benchmark::DoNotOptimize(metrics::find_delay(pair.reference, pair.degraded, 1600));
  count(state);
}

// What phone_error does apart from counting; the metric itself asks for an alignment.
void bench_phones(benchmark::State& state) {
  const Sounds pair = sounds(16000);
  const auto classifier = metrics::PhoneClassifier::builtin().value();
  ThreadPool pool;
  for (auto _ : state) benchmark::DoNotOptimize(classifier.logits(pair.degraded, 16000, pool));
  count(state);
}

template <class Function>
void add(std::string_view name, const Function& function) {
  benchmark::RegisterBenchmark(std::string(name).c_str(), function)
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.3);
}

void register_all() {
  const char* folder = std::getenv("TESSERA_METRICS");
  for (const metrics::MetricInfo& metric : metrics::all_metrics()) {
    metrics::SuiteOptions options;
    options.metrics = {std::string(metric.name)};
    options.model_folder = folder ? folder : "";
    options.max_delay_s = 0;
    const auto suite =
        std::make_shared<const metrics::MetricSuite>(metrics::MetricSuite::load(options).value());
    if (suite->available().empty()) continue;
    const int rate_hz = metric.rate_hz ? metric.rate_hz : 16000;
    add(metric.name, [=](benchmark::State& state) { bench_metric(state, *suite, rate_hz); });
  }
  add("phone_error", bench_phones);
  add("find_delay_100ms", bench_delay);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::register_all);
}
