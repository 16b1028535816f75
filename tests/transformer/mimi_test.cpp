// The layers against stage dumps of the reference implementation of Mimi (reduced model, transformers
// naming).
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/safetensors.h"
#include "reference.h"

namespace tessera::test {
namespace {

const std::string kFolder = std::string(TESSERA_SHARED_DIR) + "/fixtures/mimi/";

class MimiTransformer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no reference fixtures at " << kFolder;
    weights_ = SafeTensors::open(kFolder + "hf.safetensors").value();
    stages_ = SafeTensors::open(kFolder + "stages.safetensors").value();
  }

  // [C, T] -> [T, C]
  Floats stage(const std::string& name) const {
    const Shape shape = stages_->get(name).value().shape;
    return transposed(stages_->read_f32(name).value(), shape[0], shape[1]);
  }

  // Layer scales multiplied in, q, k and v side by side.
  PlainLayer layer(const std::string& prefix) const {
    const auto read = [&](const std::string& name) { return weights_->read_f32(prefix + name).value(); };
    const auto scaled = [](Floats weight, const Floats& scale) {
      const std::size_t columns = weight.size() / scale.size();
      for (std::size_t i = 0; i < weight.size(); ++i) weight[i] *= scale[i / columns];
      return weight;
    };
    Floats qkv;
    for (const char* name : {"q", "k", "v"}) {
      const Floats part = read(std::string("self_attn.") + name + "_proj.weight");
      qkv.insert(qkv.end(), part.begin(), part.end());
    }
    PlainLayer plain;
    plain.norm1 = read("input_layernorm.weight");
    plain.norm1_bias = read("input_layernorm.bias");
    plain.qkv = transposed(qkv, 192, 64);
    plain.out =
        transposed(scaled(read("self_attn.o_proj.weight"), read("self_attn_layer_scale.scale")), 64, 64);
    plain.norm2 = read("post_attention_layernorm.weight");
    plain.norm2_bias = read("post_attention_layernorm.bias");
    plain.up = transposed(read("mlp.fc1.weight"), 128, 64);
    plain.down = transposed(scaled(read("mlp.fc2.weight"), read("mlp_layer_scale.scale")), 64, 128);
    return plain;
  }

  Floats scale(const std::string& name) const { return weights_->read_f32(name).value(); }

  static Floats transposed(const Floats& x, std::int64_t rows, std::int64_t columns) {
    Floats y(x.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        y[static_cast<std::size_t>(j * rows + i)] = x[static_cast<std::size_t>(i * columns + j)];
      }
    }
    return y;
  }

  static Doubles doubles(const Floats& x) { return {x.begin(), x.end()}; }

  const TransformerOptions options_ = {
      .channels = 64, .hidden = 128, .attention = {.heads = 4, .kv_heads = 4, .head_dim = 16, .window = 16}};
  std::shared_ptr<const SafeTensors> weights_, stages_;
};

// The plain layer is what the other tests compare with: here it meets every stage of the reference.
TEST_F(MimiTransformer, PlainLayerReproducesEveryStage) {
  for (const int index : {0, 1}) {
    const std::string prefix = "encoder_transformer.layers." + std::to_string(index) + ".";
    const std::string dump = "enc_tr.layer" + std::to_string(index);
    const Floats x = stage(index == 0 ? "enc.out" : "enc_tr.layer0.out");
    const PlainStages stages = plain_layer(options_, layer(prefix), doubles(x), 0);
    const auto with_scale = [&](Floats value, const std::string& name) {
      const Floats factor = scale(prefix + name);
      for (std::size_t i = 0; i < value.size(); ++i) value[i] *= factor[i % factor.size()];
      return value;
    };
    expect_near(stage(dump + ".norm1"), stages.norm1, 1e-5);
    expect_near(with_scale(stage(dump + ".attn"), "self_attn_layer_scale.scale"), stages.attn, 1e-5);
    expect_near(stage(dump + ".norm2"), stages.norm2, 1e-5);
    expect_near(with_scale(stage(dump + ".mlp"), "mlp_layer_scale.scale"), stages.mlp, 1e-5);
    expect_near(stage(dump + ".out"), stages.out, 1e-5);
  }
}

TEST_F(MimiTransformer, LayersReproduceTheReference) {
  std::vector<TransformerLayerWeights> weights;
  for (const int index : {0, 1}) {
    weights.push_back(pack(options_, layer("encoder_transformer.layers." + std::to_string(index) + ".")));
  }
  const TransformerLayer first(options_, weights[0]);
  const Transformer both(options_, weights);
  const Floats x = stage("enc.out");
  for (const int length : {2, 60}) {
    expect_near(run_split(first, x, {length}), doubles(stage("enc_tr.layer0.out")), 1e-5);
    expect_near(run_split(both, x, {length}), doubles(stage("enc_tr.layer1.out")), 1e-5);
  }
}

}  // namespace
}  // namespace tessera::test
