// bench_phone_train: trains the phone classifier of the metric phone_error (metrics/phone_classifier.h) on
// recordings with phone alignments. The same seed gives the same weights on the same kind of processor. Each
// crop is heard as a codec might leave it: with noise, another tilt of the spectrum, or without treble.
// Leaves out schedules to choose from and going on after a stop: it takes minutes.
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/media.h"
#include "core/autograd/rearrange.h"
#include "core/autograd/reduce.h"
#include "core/cpu.h"
#include "core/random.h"
#include "core/safetensors.h"
#include "core/thread_pool.h"
#include "metrics/phone_alignment.h"
#include "metrics/phone_classifier.h"
#include "train/data/sources.h"
#include "train/optimizer.h"
#include "train/parameters.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using metrics::kPhoneBands;
using metrics::kPhoneContext;
using metrics::PhoneAlignments;

constexpr std::int64_t kCrop = 200;  // frames

struct Options {
  std::vector<std::string> train, test, align, held_out;
  std::string out;
  int steps = 1500, batch = 32, every = 150, threads = 0, seed = 1;
  double learning_rate = 2e-3, weight_decay = 0.05;
};

struct Recording {
  std::vector<float> powers = {};
  std::vector<std::int32_t> labels = {};  // of each frame

  std::int64_t frames() const { return static_cast<std::int64_t>(labels.size()); }
};

std::vector<float> read_sound(const std::string& path) {
  ReadOptions options;
  options.sample_rate_hz = metrics::kPhoneRateHz;
  options.channels = ChannelMode::mix;
  AudioReader reader = AudioReader::open(path, options).value();
  std::vector<float> sound, part(1 << 16);
  for (std::size_t count = reader.read(part).value(); count > 0; count = reader.read(part).value()) {
    sound.insert(sound.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return sound;
}

// Those with an alignment.
std::vector<Recording> read_recordings(const std::vector<std::string>& paths,
                                       const PhoneAlignments& alignments, ThreadPool& pool) {
  std::vector<Recording> recordings(paths.size());
  std::vector<std::string> failures(paths.size());
  pool.parallel_for(static_cast<int>(paths.size()), [&](int index) {
    const auto i = static_cast<std::size_t>(index);
    try {
      Recording& recording = recordings[i];
      recording.powers = metrics::phone_mel_powers(read_sound(paths[i]));
      const auto frames = static_cast<std::int64_t>(recording.powers.size()) / kPhoneBands;
      recording.labels = alignments.labels(paths[i], frames, PhoneAlignments::kFrameRateHz).value();
    } catch (const std::exception& error) {
      failures[i] = error.what();
    }
  });
  for (const std::string& failure : failures) {
    if (!failure.empty()) throw ResultError({ErrorCode::format, failure});
  }
  std::erase_if(recordings, [](const Recording& recording) { return recording.labels.empty(); });
  return recordings;
}

/// What a codec or a room might have done to it. Level does not matter: features are free of it.
std::vector<float> disturbed(const Recording& recording, Random& random) {
  std::vector<float> powers = recording.powers;
  double mean = 0;
  for (const float power : powers) mean += power;
  mean /= static_cast<double>(powers.size());
  float gains[kPhoneBands], noise[kPhoneBands];
  const bool noisy = random.uniform() < 0.5f, narrow = random.uniform() < 0.25f;
  const float tilt = 0.5f * random.normal(), noise_tilt = random.normal();
  const float ratio_db = 5 + 35 * random.uniform();
  const int highest = narrow ? 24 + static_cast<int>(random.below(kPhoneBands - 24)) : kPhoneBands;
  for (int b = 0; b < kPhoneBands; ++b) {
    const float place = static_cast<float>(b) / kPhoneBands - 0.5f;
    gains[b] = b < highest ? static_cast<float>(exact_exp(2 * tilt * place)) : 0.0f;
    noise[b] =
        noisy ? static_cast<float>(mean * exact_exp(-0.2302585 * ratio_db + 2 * noise_tilt * place)) : 0;
  }
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const std::size_t b = i % kPhoneBands;
    float added = 0;
    if (noisy) {  // a mean of three squares: the power of noise in a few bins
      const float u = random.normal(), v = random.normal(), w = random.normal();
      added = noise[b] * (u * u + v * v + w * w) / 3;
    }
    powers[i] = gains[b] * (powers[i] + added);
  }
  return powers;
}

struct Batch {
  Tensor features;  // [batch, kCrop + 2 kPhoneContext, kPhoneBands]
  std::vector<std::int32_t> labels;
};

Batch make_batch(const std::vector<Recording>& recordings, const Options& options, int step,
                 ThreadPool& pool) {
  constexpr std::int64_t kRows = kCrop + 2 * kPhoneContext;
  Batch batch;
  batch.features = Tensor::zeros({options.batch, kRows, kPhoneBands});
  batch.labels.assign(static_cast<std::size_t>(options.batch * kCrop), PhoneAlignments::kNone);
  pool.parallel_for(options.batch, [&](int item) {
    Random random(static_cast<std::uint64_t>(options.seed), static_cast<std::uint64_t>(item) + 1,
                  static_cast<std::uint64_t>(step));
    // Every second of sound is as likely as any other.
    std::int64_t total = 0;
    for (const Recording& one : recordings) total += one.frames();
    std::int64_t at = random.below(total);
    std::size_t chosen = 0;
    while (at >= recordings[chosen].frames()) at -= recordings[chosen++].frames();
    const Recording& recording = recordings[chosen];
    const std::vector<float> features = metrics::phone_features(disturbed(recording, random));
    const std::int64_t begin = random.below(std::max<std::int64_t>(recording.frames() - kCrop, 0) + 1);
    const std::int64_t count = std::min(kCrop, recording.frames() - begin);
    float* to = batch.features.f32() + item * kRows * kPhoneBands;
    std::copy_n(features.begin() + begin * kPhoneBands, (count + 2 * kPhoneContext) * kPhoneBands, to);
    std::copy_n(recording.labels.begin() + begin, count, batch.labels.begin() + item * kCrop);
    const std::int64_t masked = random.below(8), first = random.below(kPhoneBands - masked + 1);
    for (std::int64_t row = 0; row < kRows; ++row) {
      std::fill_n(to + row * kPhoneBands + first, masked, 0.0f);
    }
  });
  return batch;
}

/// Per cent of the frames within phones that are named right.
double accuracy(const std::vector<Recording>& recordings, const std::vector<metrics::PhoneLayer>& layers,
                ThreadPool& pool) {
  std::int64_t right = 0, all = 0;
  Tape tape(pool);
  const Tape::Pause pause(tape);
  for (const Recording& recording : recordings) {
    const std::vector<float> features = metrics::phone_features(recording.powers);
    Tensor x = tape.make({1, recording.frames() + 2 * kPhoneContext, kPhoneBands});
    std::copy(features.begin(), features.end(), x.f32());
    const Tensor logits = metrics::phone_logits(tape, x, layers);
    const std::int64_t classes = logits.dim(2);
    for (std::int64_t i = 0; i < recording.frames(); ++i) {
      const std::int32_t label = recording.labels[static_cast<std::size_t>(i)];
      if (label <= PhoneAlignments::kSilence) continue;
      const float* row = logits.f32() + i * classes;
      right += std::max_element(row, row + classes) - row == label;
      ++all;
    }
  }
  return all ? 100 * static_cast<double>(right) / static_cast<double>(all) : 0;
}

void write(const std::string& path, const std::vector<std::string>& phones, const train::NamedTensors& values,
           const std::string& training) {
  std::vector<std::vector<std::uint16_t>> rounded;
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : values) {
    std::vector<std::uint16_t>& bits = rounded.emplace_back();
    for (std::int64_t i = 0; i < tensor.size(); ++i) bits.push_back(f32_to_bf16(tensor.f32()[i]));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensors.push_back(
        {values[i].first, DType::bf16, values[i].second.shape(), std::as_bytes(std::span(rounded[i]))});
  }
  std::string names;
  for (const std::string& phone : phones) names += (names.empty() ? "" : " ") + phone;
  write_safetensors(path, tensors, {{"phones", names}, {"training", training}}).value();
}

train::NamedTensors copied(const train::NamedTensors& values) {
  train::NamedTensors copies;
  for (const auto& [name, tensor] : values) {
    copies.emplace_back(name, Tensor::zeros(tensor.shape()));
    std::copy_n(tensor.f32(), tensor.size(), copies.back().second.f32());
  }
  return copies;
}

struct Data {
  PhoneAlignments alignments;
  std::vector<Recording> train = {}, held_out = {}, test = {};
};

Data read_data(const Options& options, ThreadPool& pool) {
  Data data{PhoneAlignments::read(options.align).value()};
  const auto find = [&](const std::vector<std::string>& folders) {
    train::SourceOptions sources;
    sources.sources = folders;
    std::vector<std::string> paths;
    for (const train::SourceFile& file : train::find_sources(sources).value().files) {
      if (data.alignments.contains(file.path)) paths.push_back(file.path);
    }
    if (paths.empty())
      throw ResultError({ErrorCode::mismatch, "expected recordings with an alignment, got none"});
    return paths;
  };
  std::vector<std::string> learnt, held_out;
  for (const std::string& path : find(options.train)) {
    const std::string name = fs::path(path).stem().string();
    const bool kept_back = std::ranges::any_of(options.held_out, [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
    (kept_back ? held_out : learnt).push_back(path);
  }
  if (learnt.empty() || held_out.empty()) {
    throw ResultError({ErrorCode::usage, "--held-out: expected patterns that fit some recordings, got " +
                                             std::to_string(held_out.size()) + " of " +
                                             std::to_string(held_out.size() + learnt.size())});
  }
  data.train = read_recordings(learnt, data.alignments, pool);
  data.held_out = read_recordings(held_out, data.alignments, pool);
  if (!options.test.empty()) data.test = read_recordings(find(options.test), data.alignments, pool);
  std::printf("%zu recordings to learn from, %zu held out, %zu to test, %d classes\n", data.train.size(),
              data.held_out.size(), data.test.size(), data.alignments.classes());
  return data;
}

void run(const Options& options) {
  ThreadPool pool(options.threads);
  const Data data = read_data(options, pool);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  train::Parameters parameters(seed);
  std::vector<metrics::PhoneLayer> layers = metrics::phone_layers(data.alignments.classes());
  for (metrics::PhoneLayer& layer : layers) {
    layer.weights = parameters.add(layer.name + ".weight", layer.shape, train::Init::fan_in());
    layer.bias = parameters.add(layer.name + ".bias", {layer.shape[2]}, train::Init::zero());
  }
  std::printf("%lld weights\n%8s %8s %10s %10s %8s\n", static_cast<long long>(parameters.count()), "step",
              "loss", "held out", "test", "seconds");
  train::AdamWOptions adam;
  adam.weight_decay = options.weight_decay;
  train::AdamW optimizer(parameters.items(), adam);
  Tape tape(pool, Precision::bf16);
  double loss_sum = 0, best = -1;
  int best_step = 0, summed = 0;
  train::NamedTensors kept;
  const auto start = std::chrono::steady_clock::now();
  for (int step = 1; step <= options.steps; ++step) {
    const Batch batch = make_batch(data.train, options, step, pool);
    const Tensor logits = metrics::phone_logits(tape, batch.features, layers);
    const Tensor rows = ops::reshape(tape, logits, {logits.dim(0) * logits.dim(1), logits.dim(2)});
    const Tensor loss = ops::cross_entropy(tape, rows, batch.labels);
    loss_sum += loss.f32()[0];
    ++summed;
    parameters.clear_gradients();
    tape.backward(loss);
    const double part = static_cast<double>(step) / options.steps;
    const double rate =
        options.learning_rate * std::min(1.0, step / 100.0) * 0.5 * (1 + exact_cos(3.14159265 * part));
    optimizer.step(pool, rate, 1.0).value();
    if (step % options.every != 0 && step != options.steps) continue;
    const double held_out = accuracy(data.held_out, layers, pool);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%8d %8.3f %8.2f %% %8.2f %% %8.0f\n", step, loss_sum / summed, held_out,
                accuracy(data.test, layers, pool), seconds.count());
    std::fflush(stdout);
    loss_sum = summed = 0;
    if (held_out <= best) continue;
    best = held_out;
    best_step = step;
    kept = copied(parameters.values());
  }
  write(options.out, data.alignments.phones(), kept,
        "seed " + std::to_string(options.seed) + ", step " + std::to_string(best_step) + " of " +
            std::to_string(options.steps) + ", batch " + std::to_string(options.batch));
}

int run_program(int argc, char** argv) {
  Options options;
  CLI::App app("Trains the phone classifier of the metric phone_error", "bench_phone_train");
  const auto add_words = [&](const std::string& name, auto& value, const std::string& type,
                             const std::string& help) {
    return app.add_option(name, value, help)->type_name(type);
  };
  add_words("--align", options.align, "FILE", "Alignments (docs/teachers.md)")->required();
  add_words("--train", options.train, "DIR", "Recordings to learn from; those without alignment are left out")
      ->required();
  add_words("--held-out", options.held_out, "PATTERN", "Names of those of them that choose the step instead")
      ->required();
  add_words("--test", options.test, "DIR", "Recordings whose score is only shown");
  add_words("-o,--out", options.out, "FILE", "Gets the weights, in bf16")->required();
  const auto add_count = [&](const std::string& name, int& value, int least, const std::string& help) {
    app.add_option(name, value, help)
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(least, 1 << 30).description(""));
  };
  add_count("--steps", options.steps, 1, "Steps of the optimizer");
  add_count("--batch", options.batch, 1, "Crops of 2 s in a step");
  add_count("--every", options.every, 1, "Steps between scores");
  add_count("--seed", options.seed, 0, "Of weights and crops");
  add_count("--threads", options.threads, 0, "0: as many as cores. Any number gives the same weights");
  app.add_option("--learning-rate", options.learning_rate, "At its highest")->capture_default_str();
  app.add_option("--weight-decay", options.weight_decay, "As AdamW has it")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    set_cpu_target_from_environment().value();
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "bench_phone_train: " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  return tessera::run_program(argc, argv);
}
