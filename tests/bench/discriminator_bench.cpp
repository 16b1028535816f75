// The default discriminators on one second of audio at 24 kHz: judging it, the gradients of their own step,
// and those of the generator's step with feature matching. In time and in f32 operations per second of the
// convolutions (STFT, losses and activations left out).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/autograd/elementwise.h"
#include "tests/bench/machine.h"
#include "tests/random.h"
#include "train/discriminators/adversarial.h"
#include "train/discriminators/period_discriminator.h"
#include "train/discriminators/stft_discriminator.h"

namespace tessera::train {
namespace {

constexpr int kSampleRateHz = 24000;

enum class Pass { forward, learning, generator };

std::unique_ptr<Discriminator> make(const std::string& kind, Parameters& parameters) {
  auto jury = std::make_unique<Jury>();
  if (kind != "period") jury->add(std::make_unique<StftDiscriminator>(parameters, "stft"));
  if (kind != "stft") jury->add(std::make_unique<PeriodDiscriminator>(parameters, "period"));
  return jury;
}

struct Flops {
  double forward = 0;  ///< of the convolutions, two per multiply-add
  double first = 0;    ///< of those that see the signal itself
};

// Weights stand in the order of their outputs.
Flops count_flops(const Judgement& judgement, const Parameters& parameters) {
  Flops flops;
  std::size_t next = 0;
  const auto count = [&](const Tensor& y) {
    const Tensor& weight = parameters.items()[next].tensor;
    next += 2;  // its bias, too
    const std::int64_t positions = y.size() / y.dim(y.shape().rank() - 1);
    const double work = 2.0 * static_cast<double>(positions) * static_cast<double>(weight.size());
    flops.forward += work;
    return work;
  };
  for (std::size_t i = 0; i < judgement.scores.size(); ++i) {
    for (std::size_t k = 0; k < judgement.features[i].size(); ++k) {
      const double work = count(judgement.features[i][k]);
      if (k == 0) flops.first += work;
    }
    count(judgement.scores[i]);
  }
  return flops;
}

double work_of(Pass pass, const Flops& flops) {
  switch (pass) {
    case Pass::forward:
      return flops.forward;
    case Pass::learning:  // gradients to weights, and to inputs but for the signal
      return 3 * flops.forward - flops.first;
    case Pass::generator:  // gradients to inputs
      return 2 * flops.forward;
  }
  return 0;
}

void run(benchmark::State& state, const std::string& kind, Pass pass, int threads) {
  ThreadPool pool(threads);
  Tape tape(pool);
  Parameters parameters;
  const std::unique_ptr<Discriminator> discriminator = make(kind, parameters);
  std::vector<float> sound = test::test_sound(kSampleRateHz);
  const Tensor x = Tensor::view(sound.data(), {1, kSampleRateHz}), leaf = parameter(x);
  const Judgement real = discriminator->judge(tape, x, Mode::frozen);
  const Flops flops = count_flops(real, parameters);
  for (auto _ : state) {
    if (pass == Pass::forward) {
      benchmark::DoNotOptimize(discriminator->judge(tape, x, Mode::frozen));
    } else if (pass == Pass::learning) {
      const Judgement fake = discriminator->judge(tape, x);
      tape.backward(discriminator_loss(tape, real, fake));
      parameters.clear_gradients();
    } else {
      const Judgement fake = discriminator->judge(tape, leaf, Mode::frozen);
      const Tensor loss = generator_loss(tape, fake, AdversarialLoss::hinge_linear);
      tape.backward(ops::add(tape, loss, feature_matching_loss(tape, real, fake)));
      clear_gradient(leaf);
    }
  }
  state.counters["GFLOP_forward"] = flops.forward / 1e9;
  state.counters["GFLOP/s"] =
      benchmark::Counter(work_of(pass, flops) / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const std::string kind : {"stft", "period", "all"})
    for (const int threads : {1, 2}) {
      const auto add = [&](const std::string& pass, Pass which) {
        const std::string name = kind + "/" + pass + "/threads:" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, kind, which, threads); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      };
      add("forward", Pass::forward);
      add("learning_step", Pass::learning);
      add("generator_step", Pass::generator);
    }
}

}  // namespace
}  // namespace tessera::train

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::train::register_all);
}
