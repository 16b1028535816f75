// A step of training the default model: seconds of audio per second, where the time goes, and f32 operations
// per second of the products (network, quantizer's search, discriminators' convolutions left out) as a share
// of what the machine computes at best. tools/bench/train_peer.py does the same in PyTorch.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>

#include "core/autograd/conv.h"
#include "tests/bench/machine.h"
#include "tests/random.h"
#include "train/config.h"
#include "train/config_options.h"
#include "train/training_step.h"

namespace tessera::train {
namespace {

// Of the network and the search per frame of one clip: forward, and twice as much back (no gradient of the
// samples).
double generator_flops(const TesseraConfig& config) {
  double forward = 0, frames = 1, back = 0;
  const auto add = [&](const std::vector<TesseraBlock>& blocks, double rows) {
    for (const TesseraBlock& block : blocks) {
      double work = 0;  // multiply-adds per row out (in, for what makes several rows of one)
      if (block.transforms()) {
        rows = 1;
        work = static_cast<double>(config.hop) * config.window;
        forward += 2 * work * rows;
        if (block.kind == TesseraBlock::Kind::synthesis) back += 2 * work * rows;
        continue;
      }
      work = static_cast<double>(block.kernel) * block.in * block.out;
      if (block.kind == TesseraBlock::Kind::residual) work += static_cast<double>(block.out) * block.out;
      if (block.kind == TesseraBlock::Kind::split_gain || block.kind == TesseraBlock::Kind::join_gain)
        work = 0;
      forward += 2 * work * rows;
      back += 4 * work * rows;
    }
  };
  add(config.encoder, frames);
  add(config.decoder, frames);
  forward += 2.0 * config.codebooks * config.codebook_size * config.latent;
  return forward + back;
}

struct Setting {
  const char* name;
  Precision precision;
  int threads;
  bool adversarial = false;
  bool peer =
      false;  // what train_peer.py has a counterpart of: nothing behind the transform, nearest codewords
};

class Run {
 public:
  explicit Run(const Setting& setting) : pool_(setting.threads) {
    config_.data.train = {"made up"};
    config_.run.precision = setting.precision;
    config_.run.steps = 1 << 20;
    config_.discriminators.start_step = 0;
    if (!setting.adversarial) config_.losses.adversarial = config_.losses.feature_matching = 0;
    if (setting.peer) {
      config_.model.pitch_filter = config_.model.spectral_smoother = false;
      config_.model.search_paths = 1;
    }
    const std::int64_t length = crop_options(config_).length;
    batch_.audio = sound(config_.data.batch, length);
    step_ = TrainingStep::make(config_, pool_).value();
    step_
        ->initialize(sound(
            24 * config_.model.codebook_size * config_.model.samples_per_frame() / static_cast<int>(length) +
                1,
            length))
        .value();
    seconds_ = static_cast<double>(batch_.audio.size()) / config_.model.sample_rate_hz;
  }

  StepReport step() { return step_->run(batch_, "made up").value(); }
  double audio_s() const { return seconds_; }
  double flops() const {
    const double frames = static_cast<double>(batch_.audio.size()) / config_.model.samples_per_frame();
    return frames * generator_flops(step_->model().config());
  }

 private:
  static Tensor sound(std::int64_t clips, std::int64_t samples) {
    Tensor pcm = Tensor::zeros({clips, samples});
    const std::vector<float> all = test::test_sound(static_cast<std::size_t>(pcm.size()));
    std::copy(all.begin(), all.end(), pcm.f32());
    return pcm;
  }

  ThreadPool pool_;
  TrainConfig config_;
  Batch batch_;
  std::unique_ptr<TrainingStep> step_;
  double seconds_ = 0;
};

void train(benchmark::State& state, const Setting& setting) {
  Run run(setting);
  run.step();
  StepReport sum;
  for (auto iteration : state) {
    const StepReport report = run.step();
    for (std::size_t i = 0; i < report.seconds.size(); ++i) sum.seconds[i] += report.seconds[i];
  }
  const double steps = static_cast<double>(state.iterations());
  double generator = 0;
  for (std::size_t i = 0; i < sum.seconds.size(); ++i) {
    state.counters[std::string(kPhaseNames[i]) + "_ms"] = 1e3 * sum.seconds[i] / steps;
    if (static_cast<Phase>(i) != Phase::discriminators) generator += sum.seconds[i] / steps;
  }
  state.counters["audio_s_per_s"] = benchmark::Counter(run.audio_s() * steps, benchmark::Counter::kIsRate);
  state.counters["GFLOPS"] = run.flops() / generator / 1e9;
  state.counters["share_of_f32_peak"] = run.flops() / generator / (machine_peak().flops * setting.threads);
}

void register_all() {
  static constexpr Setting kSettings[] = {
      {.name = "train/f32/1", .precision = Precision::f32, .threads = 1},
      {.name = "train/f32/2", .precision = Precision::f32, .threads = 2},
      {.name = "train/bf16/2", .precision = Precision::bf16, .threads = 2},
      {.name = "train/bf16/2/adversarial", .precision = Precision::bf16, .threads = 2, .adversarial = true},
      {.name = "train_peer/f32/2", .precision = Precision::f32, .threads = 2, .peer = true},
      {.name = "train_peer/f32/2/adversarial",
       .precision = Precision::f32,
       .threads = 2,
       .adversarial = true,
       .peer = true},
      {.name = "train_peer/bf16/2", .precision = Precision::bf16, .threads = 2, .peer = true},
      {.name = "train_peer/bf16/2/adversarial",
       .precision = Precision::bf16,
       .threads = 2,
       .adversarial = true,
       .peer = true}};
  for (const Setting& setting : kSettings) {
    if (setting.precision == Precision::bf16 && !ops::bf16_products()) continue;
    benchmark::RegisterBenchmark(setting.name, [&setting](benchmark::State& state) { train(state, setting); })
        ->UseRealTime()
        ->MinTime(5)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace tessera::train

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::train::register_all);
}
