// The families against what the original implementations give on reduced models with the published file
// layouts: equal tokens, latents within 1e-4 (2e-4 on loud clips), PCM within 2e-5.
#include <fstream>
#include <nlohmann/json.hpp>

#include "codec/tessera_config.h"
#include "core/safetensors.h"
#include "tests/codec/support.h"

namespace tessera::test {
namespace {

struct Fixture {
  const char* folder;
  const char* weights;
};

void PrintTo(const Fixture& fixture, std::ostream* out) {
  *out << fixture.folder << '/' << fixture.weights;
}

class Reference : public testing::TestWithParam<Fixture> {};

TEST_P(Reference, TokensLatentsAndPcmAreTheOriginals) {
  TESSERA_NEED_SHARED();
  const std::string folder = shared("fixtures/") + GetParam().folder + "/";
  const auto codec = Codec::load(folder + GetParam().weights).value();
  std::ifstream stream(folder + "cases.json");
  const auto cases = nlohmann::json::parse(stream)["cases"];
  ASSERT_FALSE(cases.empty());
  for (const auto& test : cases) {
    const std::string name = test["name"];
    SCOPED_TRACE(name);
    const Tensor input = reference(folder + std::string(test["input"]));
    const std::span<const float> pcm(input.f32(), test["samples"].get<std::size_t>());

    const auto latent = reference_latents(folder + std::string(test["latent"]));
    EXPECT_LE(max_difference(latents(*codec, pcm), latent), name == "loud" ? 2e-4 : 1e-4);

    Encoder encoder = codec->encoder();
    EXPECT_EQ(encode(encoder, pcm, {1000, 1, 0, 4096}),
              reference_tokens(folder + std::string(test["tokens"])));

    for (const auto& [codebooks, file] : test["pcm"].items()) {
      const int count = std::stoi(codebooks);
      const Tensor expected = reference(folder + std::string(file));
      Decoder decoder = codec->decoder({.codebooks = count});
      const auto decoded = decode(decoder, reference_tokens(folder + std::string(test["tokens"]), count));
      EXPECT_LE(max_difference(decoded, {expected.f32(), static_cast<std::size_t>(expected.size())}), 2e-5)
          << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Reference,
                         testing::Values(Fixture{"mimi", "hf.safetensors"},
                                         Fixture{"mimi", "moshi.safetensors"},
                                         Fixture{"encodec_24khz", "model.safetensors"}),
                         [](const auto& info) {
                           return std::string(info.param.folder) + (info.index == 1 ? "_kyutai" : "");
                         });

TEST(MimiReference, BothLayoutsAreTheSameCodec) {
  TESSERA_NEED_SHARED();
  const auto a = Codec::load(shared("fixtures/mimi/hf.safetensors")).value();
  const auto b = Codec::load(shared("fixtures/mimi/moshi.safetensors")).value();
  EXPECT_EQ(a->info().weights_hash, b->info().weights_hash);
  const auto pcm = test_sound(30000);
  Encoder first = a->encoder(), second = b->encoder();
  EXPECT_EQ(encode(first, pcm), encode(second, pcm));
}

// The first speech model: companded, without bands. Its file names sizes; here they become blocks.
TesseraConfig first_speech_model() {
  using Kind = TesseraBlock::Kind;
  TesseraConfig config;
  config.sample_rate_hz = 16000;
  config.hop = config.pre_skip = 320;
  config.window = 640;
  config.latent = 128;
  config.codebooks = 24;
  config.codebook_size = 1024;
  const auto conv = [](const std::string& name, int in, int out) {
    TesseraBlock block;
    block.name = name;
    block.in = in;
    block.out = out;
    return block;
  };
  const auto add_side = [&](std::vector<TesseraBlock>& blocks, const std::string& side, int in, int out,
                            const std::vector<int>& dilations) {
    blocks.push_back(conv(side + ".in", in, 512));
    for (std::size_t i = 0; i < dilations.size(); ++i) {
      TesseraBlock block = conv(side + ".block" + std::to_string(i), 512, 512);
      block.kind = Kind::residual;
      block.kernel = 3;
      block.dilation = dilations[i];
      blocks.push_back(block);
    }
    blocks.push_back(conv(side + ".out", 512, out));
  };
  TesseraBlock transform;
  transform.kind = Kind::transform;
  config.encoder.push_back(transform);
  add_side(config.encoder, "encoder", 320, 128, {1, 2, 4, 1, 2});
  add_side(config.decoder, "decoder", 128, 320, {1, 2, 4, 8, 1, 2, 4, 8});
  transform.kind = Kind::inverse_transform;
  config.decoder.push_back(transform);
  return config;
}

TEST(SpeechReference, MatchesAnIndependentEvaluation) {
  TESSERA_NEED_SHARED();
  const std::string folder = shared("models/bootstrap_speech/reference/");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const auto file = SafeTensors::open(shared("models/bootstrap_speech/model.safetensors")).value();
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file->names()) {
    const TensorView view = *file->find(name);
    tensors.push_back({name, view.dtype, view.shape, view.bytes});
  }
  std::string bytes;
  const auto append = [&](std::span<const std::byte> part) -> Result<void> {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  };
  write_safetensors(append, tensors, {{"config", to_json(first_speech_model())}}).value();
  const auto codec = Codec::parse(std::as_bytes(std::span(bytes)), "bootstrap_speech").value();
  for (const std::string clip : {"clip0", "clip1"}) {
    SCOPED_TRACE(clip);
    const Tensor input = reference(folder + clip + "_input.npy");
    const std::span<const float> pcm(input.f32(), static_cast<std::size_t>(input.size()));
    const Tensor latent = reference(folder + clip + "_latents.npy");
    EXPECT_LE(max_difference(latents(*codec, pcm), {latent.f32(), static_cast<std::size_t>(latent.size())}),
              1e-4);
    Encoder encoder = codec->encoder();
    const auto tokens = reference_tokens(folder + clip + "_tokens.npy");
    EXPECT_EQ(encode(encoder, pcm, {777}), tokens);
    for (const int count : {4, 12, 24}) {
      const Tensor expected = reference(folder + clip + "_decoded_" + std::to_string(count) + ".npy");
      Decoder decoder = codec->decoder({.codebooks = count});
      auto decoded = decode(decoder, reference_tokens(folder + clip + "_tokens.npy", count));
      ASSERT_GE(decoded.size(), pcm.size());
      decoded.resize(pcm.size());
      EXPECT_LE(max_difference(decoded, {expected.f32(), static_cast<std::size_t>(expected.size())}), 2e-5)
          << count;
    }
  }
}

}  // namespace
}  // namespace tessera::test
