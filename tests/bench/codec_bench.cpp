// Whole codecs, on one thread unless the name says otherwise: a Mimi-shaped model with random weights, full
// size, as a stream of 80 ms frames and as a whole file, and the built-in model. `roofline` is time over the
// least time that this core needs (the larger of operations over peak and weight bytes over bandwidth, both
// measured in this run), `of_peak` the share of peak operations, `real_time` seconds of sound per second.
#include <benchmark/benchmark.h>

#include <map>

#include "codec/codec.h"
#include "tests/bench/mimi_cost.h"
#include "tests/codec/small_models.h"
#include "tests/random.h"

namespace tessera::bench {
namespace {

using test::kPublishedMimi;

constexpr int kCodebooks = 8;

std::shared_ptr<const Codec> mimi(WeightType type = WeightType::f32) {
  static const std::string file = test::mimi_weights(kPublishedMimi);
  static std::map<WeightType, std::shared_ptr<const Codec>> loaded;
  auto& codec = loaded[type];
  if (!codec) codec = Codec::parse(std::as_bytes(std::span(file)), "Mimi-shaped", {.weights = type}).value();
  return codec;
}

const std::shared_ptr<const Codec>& builtin() {
  static const auto codec = Codec::builtin().value();
  return codec;
}

std::vector<std::int32_t> tokens_of(const Codec& codec, std::span<const float> pcm, int codebooks) {
  std::vector<std::int32_t> tokens;
  Encoder encoder = codec.encoder({.codebooks = codebooks});
  encoder.push(pcm, [&](const Frame& frame) {
    tokens.insert(tokens.end(), frame.tokens.begin(), frame.tokens.end());
  });
  return tokens;
}

void report(benchmark::State& state, const Codec& codec, double frames_per_iteration) {
  const double frames = static_cast<double>(state.iterations()) * frames_per_iteration;
  state.counters["real_time"] =
      benchmark::Counter(frames / codec.info().frame_rate_hz(), benchmark::Counter::kIsRate);
}

void report_cost(benchmark::State& state, const Cost& cost, double frames_per_iteration) {
  const double frames = static_cast<double>(state.iterations()) * frames_per_iteration;
  state.counters["roofline"] = benchmark::Counter(frames * cost.roofline_s(machine_peak()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["of_peak"] =
      benchmark::Counter(frames * cost.flops / machine_peak().flops, benchmark::Counter::kIsRate);
}

enum class Sound { speech, silence, quiet };

std::vector<float> sound_of(Sound kind, std::size_t samples) {
  std::vector<float> sound = test::test_sound(samples);
  if (kind == Sound::silence) std::fill(sound.begin(), sound.end(), 0.0f);
  if (kind == Sound::quiet)
    for (float& sample : sound) sample *= 1e-30f;
  return sound;
}

void encode_frames(benchmark::State& state, WeightType type, Sound kind) {
  const auto codec = mimi(type);
  const auto sound = sound_of(kind, 1920 * 50);
  Encoder encoder = codec->encoder({.codebooks = kCodebooks});
  std::size_t at = 0;
  for (auto _ : state) {
    encoder.push(std::span(sound).subspan(at, 1920),
                 [](const Frame& frame) { benchmark::DoNotOptimize(frame.tokens.data()); });
    at = (at + 1920) % sound.size();
  }
  report(state, *codec, 1);
  if (type == WeightType::f32) report_cost(state, mimi_encode_cost(kPublishedMimi, kCodebooks), 1);
}

void decode_frames(benchmark::State& state, WeightType type, Sound kind) {
  const auto codec = mimi(type);
  const auto tokens = tokens_of(*codec, sound_of(kind, 1920 * 50), kCodebooks);
  Decoder decoder = codec->decoder({.codebooks = kCodebooks});
  std::size_t at = 0;
  for (auto _ : state) {
    if (!decoder.push(std::span(tokens).subspan(at, kCodebooks),
                      [](std::span<const float> pcm) { benchmark::DoNotOptimize(pcm.data()); })) {
      state.SkipWithError("refused tokens");
    }
    at = (at + kCodebooks) % tokens.size();
  }
  report(state, *codec, 1);
  if (type == WeightType::f32) report_cost(state, mimi_decode_cost(kPublishedMimi, kCodebooks), 1);
}

void encode_file(benchmark::State& state, const std::shared_ptr<const Codec>& codec, int codebooks,
                 int threads) {
  const int frames = 200;
  const auto sound = test::test_sound(static_cast<std::size_t>(frames * codec->info().samples_per_frame));
  Encoder encoder = codec->encoder({.codebooks = codebooks, .threads = threads});
  for (auto _ : state)
    encoder.push(sound, [](const Frame& frame) { benchmark::DoNotOptimize(frame.tokens.data()); });
  report(state, *codec, frames);
  if (codec->info().family == "mimi" && threads == 1)
    report_cost(state, mimi_encode_cost(kPublishedMimi, codebooks), frames);
}

void decode_file(benchmark::State& state, const std::shared_ptr<const Codec>& codec, int codebooks,
                 int threads) {
  const int frames = 200;
  const auto sound = test::test_sound(static_cast<std::size_t>(frames * codec->info().samples_per_frame));
  const auto tokens = tokens_of(*codec, sound, codebooks);
  Decoder decoder = codec->decoder({.codebooks = codebooks, .threads = threads});
  for (auto _ : state) {
    if (!decoder.push(tokens, [](std::span<const float> pcm) { benchmark::DoNotOptimize(pcm.data()); }))
      state.SkipWithError("refused tokens");
  }
  report(state, *codec, frames);
  if (codec->info().family == "mimi" && threads == 1)
    report_cost(state, mimi_decode_cost(kPublishedMimi, codebooks), frames);
}

// One frame of each of several streams at a time.
void encode_batch(benchmark::State& state) {
  const int streams = static_cast<int>(state.range(0));
  const auto codec = mimi();
  const auto sound = test::test_sound(1920);
  EncoderBatch batch(codec, streams, {.codebooks = kCodebooks});
  std::vector<EncoderInput> inputs;
  for (int i = 0; i < streams; ++i) inputs.push_back({.stream = batch.open(), .pcm = sound});
  for (auto _ : state)
    batch.step(inputs, [](int, const Frame& frame) { benchmark::DoNotOptimize(frame.tokens.data()); });
  report(state, *codec, streams);
}

void register_all() {
  // Rates are per second of this thread's time, which another program on the machine disturbs less; with more
  // threads, of the clock.
  const auto add = [](const std::string& name, auto run) {
    return benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
  };
  for (const auto& [type, name] : {std::pair{WeightType::f32, "f32"}, std::pair{WeightType::bf16, "bf16"},
                                   std::pair{WeightType::i8, "int8"}}) {
    add(std::string("mimi_encode_frame/") + name,
        [type = type](benchmark::State& state) { encode_frames(state, type, Sound::speech); });
    add(std::string("mimi_decode_frame/") + name,
        [type = type](benchmark::State& state) { decode_frames(state, type, Sound::speech); });
  }
  for (const auto& [kind, name] :
       {std::pair{Sound::silence, "silence"}, std::pair{Sound::quiet, "quiet_1e-30"}}) {
    add(std::string("mimi_encode_frame/") + name,
        [kind = kind](benchmark::State& state) { encode_frames(state, WeightType::f32, kind); });
    add(std::string("mimi_decode_frame/") + name,
        [kind = kind](benchmark::State& state) { decode_frames(state, WeightType::f32, kind); });
  }
  add("mimi_encode_file", [](benchmark::State& state) { encode_file(state, mimi(), kCodebooks, 1); });
  add("mimi_decode_file", [](benchmark::State& state) { decode_file(state, mimi(), kCodebooks, 1); });
  add("mimi_encode_file/2_threads", [](benchmark::State& state) {
    encode_file(state, mimi(), kCodebooks, 2);
  })->UseRealTime();
  add("mimi_decode_file/2_threads", [](benchmark::State& state) {
    decode_file(state, mimi(), kCodebooks, 2);
  })->UseRealTime();
  benchmark::RegisterBenchmark("mimi_encode_batch", encode_batch)
      ->Arg(1)
      ->Arg(4)
      ->Arg(16)
      ->Unit(benchmark::kMillisecond);
  add("builtin_encode_file", [](benchmark::State& state) { encode_file(state, builtin(), 24, 1); });
  add("builtin_decode_file", [](benchmark::State& state) { decode_file(state, builtin(), 24, 1); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  return tessera::run_benchmarks(argc, argv, tessera::bench::register_all);
}
