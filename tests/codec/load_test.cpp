// Weights that do not fit: each a clear line that names the file, what was expected and what came.
#include <unistd.h>

#include <fstream>

#include "core/safetensors.h"
#include "tests/codec/small_models.h"
#include "tests/codec/support.h"

namespace tessera::test {
namespace {

// The small model of a family with one thing changed.
struct Change {
  std::string without;   // a tensor to leave out
  std::string reshaped;  // a tensor to give another shape, [size]
  std::string from, to;  // replaced in the configuration
};

Result<std::shared_ptr<const Codec>> load_changed(const std::string& family, const Change& change) {
  const std::string original = small_weights(family);
  const auto file = SafeTensors::parse(std::as_bytes(std::span(original)), "original").value();
  std::vector<NamedTensor> tensors;
  for (const std::string& name : file->names()) {
    const TensorView view = file->get(name).value();
    if (name == change.without) continue;
    tensors.push_back(
        {name, view.dtype, name == change.reshaped ? Shape{view.shape.size()} : view.shape, view.bytes});
  }
  Metadata metadata = file->metadata();
  if (!change.from.empty()) {
    std::string& config = metadata["config"];
    const std::size_t at = config.find(change.from);
    EXPECT_NE(at, std::string::npos) << change.from;
    config.replace(at, change.from.size(), change.to);
  }
  std::string bytes;
  write_safetensors(
      [&](std::span<const std::byte> part) -> Result<void> {
        bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
        return {};
      },
      tensors, metadata)
      .value();
  return Codec::parse(std::as_bytes(std::span(bytes)), "changed.safetensors");
}

void expect_refused(const std::string& family, const Change& change, ErrorCode code,
                    const std::string& part) {
  const auto codec = load_changed(family, change);
  ASSERT_FALSE(codec) << part;
  EXPECT_EQ(codec.error().code, code) << codec.error().message;
  EXPECT_NE(codec.error().message.find(part), std::string::npos) << codec.error().message;
  EXPECT_TRUE(codec.error().message.starts_with("changed.safetensors: ")) << codec.error().message;
  EXPECT_EQ(codec.error().message.find('\n'), std::string::npos);
}

TEST(Load, EveryMissingTensorIsNamed) {
  for (const std::string& family : small_model_names()) {
    const std::string weights = small_weights(family);
    const auto file = SafeTensors::parse(std::as_bytes(std::span(weights)), "original").value();
    for (const std::string& name : file->names()) {
      SCOPED_TRACE(name);
      const auto codec = load_changed(family, {.without = name, .reshaped = {}, .from = {}, .to = {}});
      if (codec) {  // the last codebook or layer of several may go
        EXPECT_LT((*codec)->info().parameters, small_model(family)->info().parameters);
        continue;
      }
      EXPECT_TRUE(codec.error().code == ErrorCode::mismatch || codec.error().code == ErrorCode::unsupported)
          << codec.error().message;
      EXPECT_NE(codec.error().message.find("changed.safetensors"), std::string::npos)
          << codec.error().message;
    }
  }
}

TEST(Load, MisshapenTensorsAreNamed) {
  for (const auto& [family, name] :
       {std::pair{"mimi", "downsample.conv.weight"},
        std::pair{"mimi", "encoder_transformer.layers.1.mlp.fc2.weight"},
        std::pair{"encodec", "decoder.layers.3.conv.weight_v"}, std::pair{"tessera", "transform.basis"}}) {
    expect_refused(family, {.without = {}, .reshaped = name, .from = {}, .to = {}}, ErrorCode::mismatch,
                   name);
  }
}

TEST(Load, OddConfigurationsOfOurFamilyAreRefused) {
  const auto refuse = [](const std::string& from, const std::string& to, ErrorCode code,
                         const std::string& part) {
    SCOPED_TRACE(to);
    expect_refused("tessera", {.without = {}, .reshaped = {}, .from = from, .to = to}, code, part);
  };
  refuse("\"version\":2", "\"version\":3", ErrorCode::unsupported, "expected version 2, got 3");
  refuse("\"hop\":40", "\"hop\":\"40\"", ErrorCode::format,
         "expected an integer from 1 to 65536 under \"hop\", got \"40\"");
  refuse("\"hop\":40", "\"hop\":0", ErrorCode::format, "got 0");
  refuse("\"hop\":40", "\"hop\":41", ErrorCode::format, "multiple of the hop");
  refuse("\"latent\":16", "\"latent\":999999999999", ErrorCode::format, "under \"latent\"");
  refuse("\"latent\":16", "\"latent\":16,\"search_paths\":65", ErrorCode::format,
         "expected at most 64 search paths, got 65");
  refuse("\"latent\":16", "\"latent\":16,\"search_paths\":2,\"code_dimension\":4", ErrorCode::format,
         "of a plain residual quantizer only");
  refuse("\"block\":\"residual\"", "\"block\":\"magic\"", ErrorCode::format, "got \"magic\"");
  refuse("\"in\":40,\"out\":24", "\"in\":24,\"out\":24", ErrorCode::mismatch, "encoder.in.weight");
  refuse("\"name\":\"encoder.in\"", "\"nom\":\"encoder.in\"", ErrorCode::format,
         "expected a string under \"name\", got nothing");
  refuse("\"encoder\":[", "\"encoder\":5,\"x\":[", ErrorCode::format,
         "expected a list under \"encoder\", got 5");
  refuse("{\"block\":\"inverse_transform\"}",
         "{\"block\":\"conv\",\"name\":\"decoder.out\",\"in\":24,\"out\":40,\"kernel\":1,\"dilation\":1}",
         ErrorCode::format, "same number of samples per frame");
  refuse("{\"block\":\"conv\",\"name\":\"encoder.out\",\"in\":24,\"out\":16,\"kernel\":1,\"dilation\":1}",
         "{\"block\":\"split_gain\",\"bands\":[4,20]}", ErrorCode::format, "to 16 channels, got 1 to 26");
  refuse("\"name\":\"encoder.in\",\"in\":40", "\"stride\":2,\"name\":\"encoder.in\",\"in\":40",
         ErrorCode::format, "a stride of at most the kernel 1, got 2");
  refuse("{\"block\":\"inverse_transform\"}",
         "{\"block\":\"inverse_transform\"},{\"block\":\"pitch_filter\",\"hop\":40,\"shortest\":4,"
         "\"longest\":50,\"before\":2,\"after\":1,\"smoothing\":10,\"strength\":\"high\"}",
         ErrorCode::format, "expected a number from 0 to 4 under \"strength\", got \"high\"");
  refuse("{\"block\":\"inverse_transform\"}",
         "{\"block\":\"inverse_transform\"},{\"block\":\"pitch_filter\",\"hop\":30,\"shortest\":4,"
         "\"longest\":50,\"before\":2,\"after\":1,\"smoothing\":10,\"strength\":1}",
         ErrorCode::format, "a pitch filter whose hop divides the 40 samples of a frame, got 30");
  refuse("{\"block\":\"inverse_transform\"}",
         "{\"block\":\"inverse_transform\"},{\"block\":\"spectral_smoother\",\"hop\":30,\"bins\":4,"
         "\"before\":2,\"after\":1}",
         ErrorCode::format, "a spectral smoother whose hop divides the 40 samples of a frame, got 30");
  refuse("{\"block\":\"inverse_transform\"}",
         "{\"block\":\"inverse_transform\"},{\"block\":\"spectral_smoother\",\"hop\":20,\"before\":2,"
         "\"after\":1}",
         ErrorCode::format, "under \"bins\", got nothing");
  refuse("{\"block\":\"inverse_transform\"}",
         "{\"block\":\"inverse_transform\"},{\"block\":\"spectral_smoother\",\"hop\":20,\"bins\":21,"
         "\"before\":2,\"after\":1}",
         ErrorCode::format, "bins from 1 to 20, got 21");
  refuse("\"codebooks\":4", "\"codebooks\":5", ErrorCode::mismatch, "quantizer.4.codebook");
  refuse("{\"family\"", "[{\"family\"", ErrorCode::format, "expected a JSON object");
}

// The same tensors are another codec if they decode to something else.
TEST(Load, TheHashCoversTheConfiguration) {
  const auto hash = [](const std::string& from, const std::string& to) {
    const auto codec = load_changed("tessera_gain", {.without = {}, .reshaped = {}, .from = from, .to = to});
    EXPECT_TRUE(codec) << codec.error().message;
    return codec ? (*codec)->info().weights_hash : 0;
  };
  const std::uint64_t own = small_model("tessera_gain")->info().weights_hash;
  EXPECT_EQ(hash("\"search_paths\":3", "\"search_paths\":2"), own);
  EXPECT_EQ(hash("\"strength\":0.9", "\"strength\":0.90"), own);
  EXPECT_NE(hash("\"strength\":0.9", "\"strength\":0.8"), own);
  EXPECT_NE(hash("\"pre_skip\":120", "\"pre_skip\":121"), own);
}

TEST(Load, FilesOfNoFamilySaySo) {
  std::string bytes;
  const float value = 1;
  const NamedTensor tensor{"x", DType::f32, {1}, std::as_bytes(std::span(&value, 1))};
  write_safetensors(
      [&](std::span<const std::byte> part) -> Result<void> {
        bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
        return {};
      },
      {&tensor, 1})
      .value();
  const auto codec = Codec::parse(std::as_bytes(std::span(bytes)), "other.safetensors");
  ASSERT_FALSE(codec);
  EXPECT_EQ(codec.error().code, ErrorCode::unsupported);
  EXPECT_NE(codec.error().message.find("(tessera, mimi, encodec)"), std::string::npos)
      << codec.error().message;
  EXPECT_EQ(Codec::load("/nowhere/model.safetensors").error().code, ErrorCode::io);
}

// A folder with a small Mimi and a config.json.
class MimiConfig : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("tessera_load_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "model.safetensors", std::ios::binary) << small_weights("mimi");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Result<std::shared_ptr<const Codec>> load(const std::string& config) {
    std::ofstream(folder_ / "config.json") << config;
    return Codec::load((folder_ / "model.safetensors").string());
  }
  std::filesystem::path folder_;
};

TEST_F(MimiConfig, RefinesWhatShapesDoNotSay) {
  const auto sound = test_sound(9000);
  const auto plain =
      load("{\"model_type\": \"other\", \"sliding_window\": 2}").value();  // not Mimi's: ignored
  const auto narrow =
      load("{\"model_type\": \"mimi\", \"sliding_window\": 2, \"num_attention_heads\": 4}").value();
  Encoder a = plain->encoder(), b = narrow->encoder(), c = small_model("mimi")->encoder();
  const auto tokens = encode(a, sound);
  EXPECT_NE(encode(b, sound), tokens);
  EXPECT_EQ(encode(c, sound), tokens);
}

TEST_F(MimiConfig, BadOnesAreRefused) {
  EXPECT_EQ(load("not json").error().code, ErrorCode::format);
  EXPECT_EQ(load("{\"model_type\": \"mimi\", \"sliding_window\": \"wide\"}").error().code, ErrorCode::format);
  EXPECT_EQ(load("{\"model_type\": \"mimi\", \"num_attention_heads\": 7}").error().code, ErrorCode::mismatch);
  EXPECT_EQ(load("{\"model_type\": \"mimi\", \"sliding_window\": 1e300}").error().code, ErrorCode::format);
}

}  // namespace
}  // namespace tessera::test
