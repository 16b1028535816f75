// Whole layers and stacks against the plain double-precision layer, and the contracts of core/layer.h.
#include "transformer/transformer_layer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "core/cpu.h"
#include "core/error.h"
#include "reference.h"

namespace tessera::test {
namespace {

TransformerOptions mimi_like() {
  return {.channels = 64,
          .hidden = 128,
          .attention = {.heads = 4, .kv_heads = 4, .head_dim = 16, .window = 16},
          .rope = RopeLayout::half};
}

TransformerOptions llama_like() {
  return {.channels = 48,
          .hidden = 80,
          .attention = {.heads = 6, .kv_heads = 2, .head_dim = 32, .window = 21},
          .theta = 500,
          .rope = RopeLayout::interleaved,
          .norm = NormKind::rms_norm,
          .norm_eps = 1e-6f,
          .activation = Activation::silu};
}

Transformer stack(const TransformerOptions& options, int layers, bool biases) {
  std::vector<TransformerLayerWeights> weights;
  for (int i = 0; i < layers; ++i) {
    weights.push_back(pack(options, random_layer(options, biases, 100 + 50 * static_cast<std::uint32_t>(i))));
  }
  return {options, std::move(weights)};
}

Floats random_rows(const Layer& layer, int rows, std::uint32_t seed) {
  return random_values(static_cast<std::size_t>(rows * layer.in_channels()), 1.5f, seed);
}

Doubles doubles(const Floats& x) {
  return {x.begin(), x.end()};
}

TEST(TransformerLayer, EqualsPlainLayer) {
  for (const TransformerOptions& options : {mimi_like(), llama_like()}) {
    for (const bool biases : {false, true}) {
      const PlainLayer plain = random_layer(options, biases, 3);
      const TransformerLayer layer(options, pack(options, plain));
      const Floats x = random_rows(layer, 150, 4);
      expect_near(run_split(layer, x, {2, 1, 19, 0, 40}), plain_layer(options, plain, doubles(x), 0).out,
                  2e-5);
    }
  }
}

TEST(TransformerLayer, EqualsPlainLayerFarFromTheStart) {
  const TransformerOptions options = llama_like();
  const PlainLayer plain = random_layer(options, true, 5);
  const TransformerLayer layer(options, pack(options, plain));
  const Floats x = random_rows(layer, 60, 6);
  for (const std::int64_t position : {1'000'003LL, 5'000'000'001LL}) {
    Batch batch(layer, 1, 60);
    set_attention_position(batch.state(0), position);
    expect_near(batch.step({x}).front(), plain_layer(options, plain, doubles(x), position).out, 2e-5);
    EXPECT_EQ(attention_position(batch.state(0)), position + 60);
  }
}

TEST(Transformer, IsItsLayersInTurn) {
  const TransformerOptions options = mimi_like();
  const Transformer transformer = stack(options, 3, true);
  Floats x = random_rows(transformer, 70, 7);
  const Floats got = run_split(transformer, x, {5});
  for (const std::uint32_t seed : {100u, 150u, 200u}) {
    const TransformerLayer layer(options, pack(options, random_layer(options, true, seed)));
    x = run_split(layer, x, {3});
  }
  EXPECT_EQ(got, x);
}

TEST(Transformer, AnySplitGivesTheSameBits) {
  for (const TransformerOptions& options : {mimi_like(), llama_like()}) {
    const Transformer transformer = stack(options, 2, false);
    const Floats x = random_rows(transformer, 130, 8);
    const Floats expected = run_split(transformer, x, {130});
    for (const std::vector<int>& lengths :
         std::vector<std::vector<int>>{{1}, {2}, {3, 0, 17}, {0, 16}, {64, 5}}) {
      EXPECT_EQ(run_split(transformer, x, lengths), expected) << "steps of " << lengths.front();
    }
  }
}

TEST(Transformer, BatchAndThreadsDoNotMatter) {
  const Transformer transformer = stack(llama_like(), 2, true);
  const int channels = transformer.in_channels();
  const std::vector<int> totals = {75, 40, 110};
  std::vector<Floats> streams, expected;
  for (std::size_t i = 0; i < 3; ++i) {
    streams.push_back(random_rows(transformer, totals[i], 9 + static_cast<std::uint32_t>(i)));
    expected.push_back(run_split(transformer, streams[i], {totals[i]}));
  }
  for (const int threads : {1, 2, 3}) {
    Batch batch(transformer, 3, 23, threads);
    std::vector<Floats> got(3);
    std::vector<int> done(3, 0);
    for (int turn = 0; done != totals; ++turn) {
      std::vector<Floats> x;
      for (std::size_t i = 0; i < 3; ++i) {
        const int wish = (turn + static_cast<int>(i)) % 3 == 0 ? 0 : (turn * 5) % 24;  // often idle
        const int rows = std::min(wish, totals[i] - done[i]);
        x.push_back(rows_of(streams[i], channels, done[i], done[i] + rows));
        done[i] += rows;
      }
      const std::vector<Floats> y =
          batch.step(x, turn % 2 == 0 ? Workspace::Side::low : Workspace::Side::high);
      for (std::size_t i = 0; i < 3; ++i) got[i].insert(got[i].end(), y[i].begin(), y[i].end());
    }
    EXPECT_EQ(got, expected) << threads << " threads";
  }
}

TEST(Transformer, EveryInstructionSetGivesTheSameBits) {
  for (const TransformerOptions& options : {mimi_like(), llama_like()}) {
    const Transformer transformer = stack(options, 2, true);
    const Floats x = random_rows(transformer, 60, 12);
    const Floats expected = run_split(transformer, x, {7});
    for (const std::string& target : available_cpu_targets()) {
      ASSERT_TRUE(set_cpu_target(target));
      EXPECT_EQ(run_split(transformer, x, {7}), expected) << target;
    }
    ASSERT_TRUE(set_cpu_target(""));
  }
}

TEST(Transformer, ACopiedStateGoesOnAlike) {
  const Transformer transformer = stack(mimi_like(), 2, false);
  const int channels = transformer.in_channels();
  const Floats x = random_rows(transformer, 90, 13);
  const Floats expected = run_split(transformer, x, {90});
  Batch first(transformer, 1, 53);
  first.step({rows_of(x, channels, 0, 53)});
  Batch second(transformer, 2, 37);
  std::memcpy(second.state(1), first.state(0), transformer.state_bytes());
  const std::vector<Floats> y = second.step({{}, rows_of(x, channels, 53, 90)});
  EXPECT_EQ(y[1], rows_of(expected, channels, 53, 90));
}

TEST(Transformer, WorksOnRowsOutsideTheWorkspace) {
  const Transformer transformer = stack(mimi_like(), 2, false);
  const Floats x = random_rows(transformer, 20, 14);
  Batch batch(transformer, 1, 20);
  ThreadPool pool(1);
  StepContext context{batch.workspace(), pool};
  Floats rows = x;
  const int length = 20;
  const bool end = true;
  std::byte* state = batch.state(0);
  const Sequences y =
      transformer.step({Tensor::view(rows.data(), {20, transformer.in_channels()}), {&length, 1}, {&end, 1}},
                       States({&state, 1}), context);
  EXPECT_EQ(y.rows.raw(), rows.data());
  EXPECT_EQ(rows, run_split(transformer, x, {20}));
}

TEST(Transformer, InitWritesEveryByte) {
  const Transformer transformer = stack(mimi_like(), 3, false);
  std::vector<std::byte> a(transformer.state_bytes(), std::byte{0xAA}), b(a.size(), std::byte{0x55});
  transformer.init_state(a.data());
  transformer.init_state(b.data());
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.size() % 64, 0u);
}

TEST(TransformerLayer, RefusesWeightsThatDoNotFit) {
  const TransformerOptions options = mimi_like();
  const auto make = [&](auto change) {
    TransformerLayerWeights weights = pack(options, random_layer(options, true, 15));
    change(weights);
    return TransformerLayer(options, std::move(weights));
  };
  EXPECT_NO_THROW(make([](auto&) {}));
  EXPECT_THROW(make([](auto& w) { w.norm1.weight.pop_back(); }), UsageError);
  EXPECT_THROW(make([](auto& w) { w.norm2.bias.pop_back(); }), UsageError);
  EXPECT_THROW(make([](auto& w) { w.qkv.bias.push_back(0); }), UsageError);
  EXPECT_THROW(make([](auto& w) { std::swap(w.up, w.down); }), UsageError);
  EXPECT_THROW(make([](auto& w) { w.out.weight = PackedMatrix(); }), UsageError);

  TransformerOptions rms = options;
  rms.norm = NormKind::rms_norm;
  EXPECT_THROW(TransformerLayer(rms, pack(options, random_layer(options, true, 16))), UsageError);
  TransformerOptions narrow = options;
  narrow.attention.window = 0;
  EXPECT_THROW(TransformerLayer(narrow, pack(options, random_layer(options, true, 17))), UsageError);
  EXPECT_THROW(Transformer(options, {}), UsageError);
}

TEST(TransformerLayer, RefusesOtherChannels) {
  const Transformer transformer = stack(mimi_like(), 1, false);
  Batch batch(transformer, 1, 4);
  ThreadPool pool(1);
  StepContext context{batch.workspace(), pool};
  Floats rows(4 * 32);
  const int length = 4;
  const bool end = false;
  std::byte* state = batch.state(0);
  EXPECT_THROW(transformer.step({Tensor::view(rows.data(), {4, 32}), {&length, 1}, {&end, 1}},
                                States({&state, 1}), context),
               UsageError);
}

}  // namespace
}  // namespace tessera::test
