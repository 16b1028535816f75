// The contracts of the library over every family: exact streams whatever the split, company, threads and
// instruction set; states as values; exact lengths; no allocation in a step; concealment; bad tokens.
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "codec/model.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/hash.h"
#include "tests/codec/small_models.h"
#include "tests/codec/support.h"

namespace tessera::test {
namespace {

using Tokens = std::vector<std::int32_t>;
using Floats = std::vector<float>;

class Contracts : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Codec> codec = small_model(GetParam());
  Floats sound = test_sound(2777);
};

Tokens encode_whole(const Codec& codec, std::span<const float> pcm, const StreamOptions& options = {}) {
  Encoder encoder = codec.encoder(options);
  return encode(encoder, pcm);
}

Floats decode_whole(const Codec& codec, std::span<const std::int32_t> tokens,
                    const StreamOptions& options = {}) {
  Decoder decoder = codec.decoder(options);
  return decode(decoder, tokens);
}

std::uint64_t hash_of(const auto& values) {
  return content_hash(std::as_bytes(std::span(values)));
}

TEST_P(Contracts, AnySplitGivesTheSameBits) {
  const Tokens tokens = encode_whole(*codec, sound);
  const Floats pcm = decode_whole(*codec, tokens);
  const std::size_t hop = static_cast<std::size_t>(codec->info().samples_per_frame);
  for (const Pieces& pieces :
       {Pieces{1}, Pieces{0, 7, 1, 333}, Pieces{hop}, Pieces{hop - 1, 2 * hop + 1}, Pieces{5 * hop}}) {
    Encoder encoder = codec->encoder();
    EXPECT_EQ(encode(encoder, sound, pieces), tokens);
    EXPECT_EQ(encode(encoder, sound, pieces), tokens) << "a second stream after the flush";
    Decoder decoder = codec->decoder();
    EXPECT_EQ(decode(decoder, tokens, {pieces.front() % 5 + 1, 0, 2}), pcm);
    EXPECT_EQ(decode(decoder, tokens, {1}), pcm) << "a second stream after the flush";
  }
  for (const int frames : {1, 3, 1000}) {
    EXPECT_EQ(encode_whole(*codec, sound, {.max_frames_per_step = frames}), tokens);
    EXPECT_EQ(decode_whole(*codec, tokens, {.max_frames_per_step = frames}), pcm);
  }
}

TEST_P(Contracts, ThreadsAndInstructionSetsGiveTheSameBits) {
  const Tokens tokens = encode_whole(*codec, sound);
  const Floats pcm = decode_whole(*codec, tokens);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(encode_whole(*codec, sound, {.threads = threads}), tokens);
    EXPECT_EQ(decode_whole(*codec, tokens, {.threads = threads}), pcm);
  }
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target));
    EXPECT_EQ(encode_whole(*codec, sound), tokens) << target;
    EXPECT_EQ(decode_whole(*codec, tokens), pcm) << target;
    ASSERT_TRUE(set_cpu_target(""));
  }
}

// What x86-64 gave when the test was written: other machines must give the same.
TEST_P(Contracts, EveryMachineGivesTheSameBits) {
  struct Golden {
    std::uint64_t weights, tokens, pcm;
  };
  const std::map<std::string, Golden> golden{
      {"mimi", {0xeef2d77039d4a669, 0x911b829e249df9b5, 0xf98c77958ada9242}},
      {"encodec", {0xf4f8678eba93ab1e, 0x55ebdb19b701297f, 0x854d337b22ea5566}},
      {"tessera", {0x312916c6d93cfb73, 0x35fcdf478d80a72f, 0xd52827b561de4182}},
      {"tessera_gain", {0x55804ba03d2114d1, 0x0be33d3dbe742240, 0x926c592325c14ba0}},
  };
  const Tokens tokens = encode_whole(*codec, sound);
  EXPECT_EQ(hex(codec->info().weights_hash), hex(golden.at(GetParam()).weights));
  EXPECT_EQ(hex(hash_of(tokens)), hex(golden.at(GetParam()).tokens));
  EXPECT_EQ(hex(hash_of(decode_whole(*codec, tokens))), hex(golden.at(GetParam()).pcm));
}

TEST_P(Contracts, StreamsOfABatchAreAsAlone) {
  constexpr int kStreams = 3;
  EncoderBatch encoders(codec, kStreams);
  DecoderBatch decoders(codec, kStreams);
  std::vector<Floats> sounds;
  std::vector<Tokens> tokens(kStreams);
  std::vector<Floats> pcm(kStreams);
  for (int i = 0; i < kStreams; ++i) {
    sounds.push_back(
        test_sound(1500 + 400 * static_cast<std::size_t>(i), 10 + static_cast<std::uint64_t>(i)));
    EXPECT_EQ(encoders.open(), i);
    EXPECT_EQ(decoders.open(), i);
  }
  EXPECT_THROW(encoders.open(), UsageError);
  std::vector<std::size_t> at(kStreams);
  std::vector<bool> over(kStreams);
  for (int round = 0; round < 400; ++round) {
    std::vector<EncoderInput> inputs;
    for (int i = 0; i < kStreams; ++i) {
      const std::size_t k = static_cast<std::size_t>(i);
      if (over[k] || (round + i) % 3 == 0 || (i == 2 && round < 5)) continue;  // idle, or not there yet
      const std::size_t count =
          std::min<std::size_t>(static_cast<std::size_t>(round * 37 % 211), sounds[k].size() - at[k]);
      const bool end = at[k] + count == sounds[k].size();
      inputs.push_back({.stream = i, .pcm = std::span(sounds[k]).subspan(at[k], count), .end = end});
      at[k] += count;
      over[k] = end;
    }
    std::vector<Tokens> fresh(kStreams);
    encoders.step(inputs, [&](int stream, const Frame& frame) {
      auto& to = fresh[static_cast<std::size_t>(stream)];
      to.insert(to.end(), frame.tokens.begin(), frame.tokens.end());
    });
    std::vector<DecoderInput> frames;
    for (const EncoderInput& input : inputs) {
      const std::size_t k = static_cast<std::size_t>(input.stream);
      tokens[k].insert(tokens[k].end(), fresh[k].begin(), fresh[k].end());
      frames.push_back({.stream = input.stream, .tokens = fresh[k], .end = input.end});
    }
    decoders
        .step(frames,
              [&](int stream, std::span<const float> part) {
                auto& to = pcm[static_cast<std::size_t>(stream)];
                to.insert(to.end(), part.begin(), part.end());
              })
        .value();
    if (over[0] && encoders.codebooks() == codec->info().codebooks && round % 50 == 0) {
      encoders.close(0);  // another stream takes its place
      EXPECT_EQ(encoders.open(), 0);
    }
  }
  for (std::size_t k = 0; k < kStreams; ++k) {
    ASSERT_TRUE(over[k]);
    EXPECT_EQ(tokens[k], encode_whole(*codec, sounds[k])) << k;
    EXPECT_EQ(pcm[k], decode_whole(*codec, tokens[k])) << k;
  }
  const EncoderInput twice[] = {{.stream = 1}, {.stream = 1}};
  EXPECT_THROW(encoders.step(twice, [](int, const Frame&) {}), UsageError);
}

TEST_P(Contracts, StatesAreValues) {
  const Tokens tokens = encode_whole(*codec, sound);
  const std::size_t half = 1234;
  Encoder encoder = codec->encoder();
  Tokens first;
  const auto collect_to = [](Tokens& to) {
    return [&to](const Frame& frame) { to.insert(to.end(), frame.tokens.begin(), frame.tokens.end()); };
  };
  auto into_first = collect_to(first);
  encoder.push(std::span(sound).first(half), into_first);
  const std::vector<std::byte> saved = encoder.state().save();
  Encoder fork = encoder.fork(), restored = codec->encoder();
  ASSERT_TRUE(restored.state().restore(saved));
  for (Encoder* each : {&encoder, &fork, &restored}) {
    Tokens all = first;
    auto into_all = collect_to(all);
    each->push(std::span(sound).subspan(half), into_all);
    each->flush(into_all);
    EXPECT_EQ(all, tokens);
  }

  // Equal histories give equal states, however they were pushed.
  Encoder a = codec->encoder(), b = codec->encoder();
  Tokens unused;
  auto into_unused = collect_to(unused);
  a.push(std::span(sound).first(half), into_unused);
  for (std::size_t i = 0; i < half; ++i) b.push(std::span(sound).subspan(i, 1), into_unused);
  EXPECT_TRUE(a.state() == b.state());

  Decoder decoder = codec->decoder();
  EXPECT_EQ(decoder.state().restore(saved).error().code, ErrorCode::mismatch);
  for (std::size_t size = 0; size < saved.size(); size += size < 64 ? 1 : 997) {
    EXPECT_FALSE(restored.state().restore(std::span(saved).first(size)));
  }
  for (std::size_t i = 0; i < saved.size(); i += i < 64 ? 1 : 997) {
    std::vector<std::byte> damaged = saved;
    damaged[i] ^= std::byte{1};
    EXPECT_FALSE(restored.state().restore(damaged)) << i;
  }
}

TEST_P(Contracts, EveryLengthComesBackExactly) {
  const CodecInfo& info = codec->info();
  for (std::size_t length = 0; length < 700; length += length < 200 ? 1 : 7) {
    const Tokens tokens = encode_whole(*codec, std::span(sound).first(length));
    const auto frames = info.frames_for(static_cast<std::int64_t>(length));
    ASSERT_EQ(tokens.size(), static_cast<std::size_t>(frames * info.codebooks)) << length;
    const Floats pcm = decode_whole(*codec, tokens);
    ASSERT_EQ(pcm.size(),
              static_cast<std::size_t>(length ? frames * info.samples_per_frame - info.pre_skip : 0))
        << length;
    ASSERT_GE(pcm.size(), length);
    ASSERT_LT(pcm.size(), length + static_cast<std::size_t>(info.samples_per_frame));
  }
}

TEST_P(Contracts, NothingIsAllocatedInAStep) {
  Encoder encoder = codec->encoder();
  Decoder decoder = codec->decoder();
  std::int64_t frames = 0, samples = 0;
  const auto run = [&](std::span<const float> pcm) {
    encoder.push(pcm, [&](const Frame& frame) {
      ++frames;
      if (decoder.push(
              frame, [&](std::span<const float> part) { samples += static_cast<std::int64_t>(part.size()); }))
        return;
      ADD_FAILURE();
    });
  };
  const std::int64_t before = allocations_so_far();
  for (const std::size_t piece : {1u, 100u, 2000u}) run(std::span(sound).first(piece));
  decoder.lost([](std::span<const float>) {});
  run(sound);
  encoder.flush([](const Frame&) {});
  decoder.flush([](std::span<const float>) {});
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_GT(frames, 10);
  EXPECT_GT(samples, 0);
}

// Resident memory of this process in KiB.
std::int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

TEST(Memory, IsFlatForAnHourOfInput) {
  const auto codec = small_model("tessera");
  Encoder encoder = codec->encoder({.codebooks = 2});
  Decoder decoder = codec->decoder({.codebooks = 2});
  const Floats minute = test_sound(60 * static_cast<std::size_t>(codec->info().sample_rate_hz));
  std::int64_t samples = 0, after_a_minute = 0, allocated = 0;
  for (int i = 0; i < 60; ++i) {
    encoder.push(minute, [&](const Frame& frame) {
      if (!decoder.push(
              frame, [&](std::span<const float> pcm) { samples += static_cast<std::int64_t>(pcm.size()); }))
        ADD_FAILURE();
    });
    if (i == 0) {
      after_a_minute = resident_kib();
      allocated = allocations_so_far();
    }
  }
  EXPECT_EQ(samples, 3600 * codec->info().sample_rate_hz - codec->info().pre_skip);
  EXPECT_EQ(allocations_so_far(), allocated);
  EXPECT_LE(resident_kib(), after_a_minute + after_a_minute / 20);
}

TEST_P(Contracts, AnyPrefixOfCodebooksDecodes) {
  const int count = codec->info().codebooks;
  const Tokens all = encode_whole(*codec, sound);
  for (int kept = 1; kept <= count; ++kept) {
    const std::size_t k = static_cast<std::size_t>(kept), n = static_cast<std::size_t>(count);
    Tokens prefix(all.size() / n * k);
    for (std::size_t i = 0; i < prefix.size(); ++i) prefix[i] = all[i / k * n + i % k];
    // A search along several paths chooses by all codebooks that follow, after the first.
    if (GetParam() != std::string("tessera_gain") || kept == 1) {
      ASSERT_EQ(encode_whole(*codec, sound, {.codebooks = kept}), prefix);
    }
    const Floats pcm = decode_whole(*codec, prefix, {.codebooks = kept});
    Decoder decoder = codec->decoder();  // opened for all of them, given fewer
    Floats again;
    const auto collect = [&](std::span<const float> part) {
      again.insert(again.end(), part.begin(), part.end());
    };
    for (std::size_t at = 0; at < prefix.size(); at += static_cast<std::size_t>(kept)) {
      decoder.push(Frame{0, std::span(prefix).subspan(at, static_cast<std::size_t>(kept))}, collect).value();
    }
    decoder.flush(collect);
    EXPECT_EQ(again, pcm);
  }
  EXPECT_THROW(codec->encoder({.codebooks = count + 1}), UsageError);
  EXPECT_THROW(codec->decoder({.codebooks = -1}), UsageError);
}

TEST_P(Contracts, BadTokensAreRefusedAndNothingMoves) {
  Decoder decoder = codec->decoder();
  const auto ignore = [](std::span<const float>) { ADD_FAILURE(); };
  const std::size_t n = static_cast<std::size_t>(codec->info().codebooks);
  const State before = decoder.state();
  Tokens tokens(3 * n);
  for (const std::int32_t bad :
       {-1, codec->info().codebook_sizes[1], std::numeric_limits<std::int32_t>::max()}) {
    tokens[2 * n + 1] = bad;
    const auto result = decoder.push(tokens, ignore);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("frame 2, codebook 1: expected a token from 0 to"),
              std::string::npos)
        << result.error().message;
  }
  EXPECT_FALSE(decoder.push(std::span(tokens).first(n + 1), ignore));
  EXPECT_TRUE(decoder.state() == before);
}

TEST_P(Contracts, LostFramesFadeOutAndBackIn) {
  const Tokens tokens = encode_whole(*codec, sound);
  const Floats whole = decode_whole(*codec, tokens);
  const std::size_t n = static_cast<std::size_t>(codec->info().codebooks),
                    hop = static_cast<std::size_t>(codec->info().samples_per_frame);
  const std::size_t good = tokens.size() / n / 2;
  Decoder decoder = codec->decoder();
  Floats pcm;
  const auto collect = [&](std::span<const float> part) { pcm.insert(pcm.end(), part.begin(), part.end()); };
  decoder.push(std::span(tokens).first(good * n), collect).value();
  const std::size_t heard = pcm.size();
  const auto fading =
      static_cast<std::size_t>(std::ceil(0.12 * codec->info().sample_rate_hz / static_cast<double>(hop)));
  for (std::size_t i = 0; i < fading + 2; ++i) decoder.lost(collect);
  for (std::size_t i = pcm.size() - hop; i < pcm.size(); ++i) ASSERT_EQ(pcm[i], 0.0f);
  decoder.push(std::span(tokens).subspan(good * n), collect).value();
  decoder.flush(collect);
  EXPECT_EQ(pcm.size(), whole.size() + (fading + 2) * hop);
  EXPECT_EQ(Floats(pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(heard)),
            Floats(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(heard)));
  EXPECT_NE(pcm.back(), 0.0f);
}

TEST_P(Contracts, SamplesThatAreNoNumbersCountAsSilence) {
  Floats bad = sound, clean = sound;
  for (std::size_t i = 100; i < 110; ++i) {
    bad[i] = i % 2 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
    clean[i] = 0;
  }
  Encoder encoder = codec->encoder();
  EXPECT_EQ(encode(encoder, bad, {105}), encode_whole(*codec, clean));
}

TEST_P(Contracts, ReducedPrecisionKeepsTheContracts) {
  for (const WeightType type : {WeightType::bf16, WeightType::i8}) {
    const auto reduced = small_model(GetParam(), {.weights = type});
    EXPECT_EQ(reduced->info().weights_hash, codec->info().weights_hash);
    const Tokens tokens = encode_whole(*reduced, sound);
    Encoder encoder = reduced->encoder({.threads = 2});
    EXPECT_EQ(encode(encoder, sound, {333, 1}), tokens);
  }
}

TEST_P(Contracts, HalvesCanBeLoadedAlone) {
  const auto only_decoder = small_model(GetParam(), {.encoder = false});
  const auto only_encoder = small_model(GetParam(), {.decoder = false});
  const Tokens tokens = encode_whole(*only_encoder, sound);
  EXPECT_EQ(decode_whole(*only_decoder, tokens), decode_whole(*codec, encode_whole(*codec, sound)));
  EXPECT_THROW(only_decoder->encoder(), UsageError);
  EXPECT_THROW(only_encoder->decoder(), UsageError);
  EXPECT_EQ(only_decoder->info().weights_hash, codec->info().weights_hash);
}

INSTANTIATE_TEST_SUITE_P(Families, Contracts, testing::ValuesIn(small_model_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
