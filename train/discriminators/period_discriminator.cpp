#include "train/discriminators/period_discriminator.h"

#include <array>
#include <cstdint>
#include <utility>

#include "core/autograd/conv.h"
#include "core/autograd/rearrange.h"
#include "core/error.h"

namespace tessera::train {
namespace {

constexpr float kSlope = 0.1f;

void check(const PeriodDiscriminatorConfig& config) {
  const auto demand = [](bool fits, const char* expected, int got) {
    if (!fits) fail("period_discriminator", expected, std::to_string(got));
  };
  demand(!config.periods.empty(), "periods, at least one", 0);
  for (const int period : config.periods)
    demand(period >= 1 && period <= 1024, "periods of 1 to 1024 samples", period);
  demand(config.channels >= 1 && config.channels <= 1024, "1 to 1024 channels", config.channels);
  demand(config.layers >= 1 && config.layers <= 16, "1 to 16 layers", config.layers);
}

// Every phase of the period as a sequence of its own, the end of x reflected to a whole period.
Tensor deal(Tape& tape, const Tensor& x, std::int64_t period) {
  const std::int64_t batch = x.dim(0), lacking = (period - x.dim(1) % period) % period;
  const Tensor whole = lacking ? ops::pad(tape, x, 1, 0, lacking, ops::Padding::reflect) : x;
  const std::int64_t length = whole.dim(1) / period;
  const Tensor rows = ops::reshape(tape, whole, {batch, length, period});       // [B, T/p, p]
  const Tensor phases = ops::permute(tape, rows, std::array<int, 3>{0, 2, 1});  // [B, p, T/p]
  return ops::reshape(tape, phases, {batch * period, length, 1});               // [B p, T/p, 1]
}

}  // namespace

PeriodDiscriminator::PeriodDiscriminator(Parameters& parameters, const std::string& name,
                                         const PeriodDiscriminatorConfig& config) {
  check(config);
  for (const int length : config.periods) {
    const std::string prefix = name + "." + std::to_string(length) + ".";
    Period period;
    period.length = length;
    std::int64_t inputs = 1;
    for (int i = 0; i < config.layers; ++i) {
      const std::int64_t outputs = config.channels * (i == 0 ? 1 : i == 1 ? 2 : 4);
      period.kernels.push_back(
          Kernel::add(parameters, prefix + std::to_string(i), {5, inputs, outputs}, kSlope));
      inputs = outputs;
    }
    period.last = Kernel::add(parameters, prefix + "last", {3, inputs, 1}, 1.0f);
    periods_.push_back(std::move(period));
  }
}

Judgement PeriodDiscriminator::judge(Tape& tape, const Tensor& x, Mode mode) const {
  Judgement judgement;
  if (x.shape().rank() != 2) fail("period_discriminator", "x [B, T]", x.shape().str());
  for (const Period& period : periods_) {
    if (x.dim(1) < period.length)
      fail("period_discriminator", "at least " + std::to_string(period.length) + " samples", x.shape().str());
    Tensor y = deal(tape, x, period.length);
    std::vector<Tensor> features;
    for (const Kernel& learnt : period.kernels) {
      const Kernel kernel = learnt.in(mode);
      ops::Conv1dOptions options;
      options.stride = 3;
      options.pad_left = options.pad_right = 2;
      options.post = Activation::leaky_relu;
      options.slope = kSlope;
      y = ops::conv1d(tape, y, kernel.weight, kernel.bias, options);  // [B p, time / 3, channels]
      features.push_back(y);
    }
    const Kernel last = period.last.in(mode);
    ops::Conv1dOptions options;
    options.pad_left = options.pad_right = 1;
    judgement.scores.push_back(ops::conv1d(tape, y, last.weight, last.bias, options));  // [B p, time, 1]
    judgement.features.push_back(std::move(features));
  }
  return judgement;
}

}  // namespace tessera::train
