// Bare attention against the plain double-precision form, and the contracts: any split, batch, thread count,
// instruction set and position gives the same bits; exactly the window is seen.
#include "transformer/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "core/cpu.h"
#include "core/error.h"
#include "reference.h"

namespace tessera::test {
namespace {

// Streams of bare attention, each with its own state.
class Runner {
 public:
  Runner(const AttentionOptions& options, int streams, int threads = 1)
      : options_(options), pool_(threads), workspace_(attention_workspace_bytes(options, streams)) {
    for (int i = 0; i < streams; ++i) {
      states_.push_back(
          Tensor::zeros({static_cast<std::int64_t>(attention_state_bytes(options))}, DType::u8));
      blocks_.push_back(states_.back().as<std::byte>());
      init_attention_state(options, blocks_.back());
    }
  }

  std::byte* state(int stream) { return blocks_[static_cast<std::size_t>(stream)]; }

  std::vector<Floats> step(const std::vector<Floats>& qkv) {
    std::vector<int> lengths;
    Floats rows;
    for (const Floats& x : qkv) {
      lengths.push_back(static_cast<int>(x.size()) / options_.qkv_channels());
      rows.insert(rows.end(), x.begin(), x.end());
    }
    const std::size_t channels = static_cast<std::size_t>(options_.out_channels());
    Floats out(rows.size() / static_cast<std::size_t>(options_.qkv_channels()) * channels, -1.0f);
    StepContext context{workspace_, pool_};
    attention(options_, rows.data(), lengths, States(blocks_), out.data(), Workspace::Side::low, context);
    std::vector<Floats> result;
    const float* from = out.data();
    for (const int length : lengths) {
      result.emplace_back(from, from + static_cast<std::size_t>(length) * channels);
      from += static_cast<std::size_t>(length) * channels;
    }
    return result;
  }

  // Stream 0 of a batch of one, by the given lengths in turn.
  Floats run(const Floats& qkv, const std::vector<int>& lengths) {
    const int total = static_cast<int>(qkv.size()) / options_.qkv_channels();
    Floats out;
    int done = 0;
    for (std::size_t turn = 0; done < total; ++turn) {
      const int rows = std::min(lengths[turn % lengths.size()], total - done);
      const Floats part = step({rows_of(qkv, options_.qkv_channels(), done, done + rows)}).front();
      out.insert(out.end(), part.begin(), part.end());
      done += rows;
    }
    return out;
  }

 private:
  AttentionOptions options_;
  ThreadPool pool_;
  Workspace workspace_;
  std::vector<Tensor> states_;
  std::vector<std::byte*> blocks_;
};

Floats random_qkv(const AttentionOptions& options, int rows, std::uint32_t seed) {
  return random_values(static_cast<std::size_t>(rows * options.qkv_channels()), 2.0f, seed);
}

const AttentionOptions kCases[] = {{.heads = 4, .kv_heads = 4, .head_dim = 16, .window = 16},
                                   {.heads = 8, .kv_heads = 8, .head_dim = 64, .window = 250},
                                   {.heads = 4, .kv_heads = 2, .head_dim = 32, .window = 5},
                                   {.heads = 6, .kv_heads = 1, .head_dim = 48, .window = 33},
                                   {.heads = 2, .kv_heads = 2, .head_dim = 128, .window = 1},
                                   {.heads = 3, .kv_heads = 3, .head_dim = 80, .window = 2},
                                   {.heads = 16, .kv_heads = 4, .head_dim = 128, .window = 40}};

TEST(Attention, EqualsPlainAttentionOverSeveralWraps) {
  std::uint32_t seed = 1;
  for (const AttentionOptions& options : kCases) {
    SCOPED_TRACE("window " + std::to_string(options.window));
    const int rows = 3 * (options.window + 31) + 5;
    const Floats qkv = random_qkv(options, rows, seed++);
    const Doubles expected = plain_attention(options, Doubles(qkv.begin(), qkv.end()), 0);
    Runner runner(options, 1);
    expect_near(runner.run(qkv, {2, 1, 3, 0, 19, 2}), expected, 4e-6);
    EXPECT_EQ(attention_position(runner.state(0)), rows);
  }
}

TEST(Attention, AnySplitGivesTheSameBitsAndState) {
  for (const AttentionOptions& options : kCases) {
    SCOPED_TRACE("window " + std::to_string(options.window));
    const int rows = 2 * (options.window + 31) + 3;
    const Floats qkv = random_qkv(options, rows, 7);
    Runner whole(options, 1);
    const Floats expected = whole.run(qkv, {rows});
    for (const std::vector<int>& lengths :
         std::vector<std::vector<int>>{{1}, {2}, {3, 0, 17}, {16}, {64, 5}}) {
      Runner split(options, 1);
      EXPECT_EQ(split.run(qkv, lengths), expected) << "steps of " << lengths.front();
      EXPECT_EQ(std::memcmp(split.state(0), whole.state(0), attention_state_bytes(options)), 0);
    }
  }
}

TEST(Attention, EveryInstructionSetGivesTheSameBits) {
  for (const AttentionOptions& options : kCases) {
    SCOPED_TRACE("window " + std::to_string(options.window));
    const Floats qkv = random_qkv(options, options.window + 50, 8);
    const Floats expected = Runner(options, 1).run(qkv, {13});
    for (const std::string& target : available_cpu_targets()) {
      ASSERT_TRUE(set_cpu_target(target));
      EXPECT_EQ(Runner(options, 1).run(qkv, {13}), expected) << target;
    }
    ASSERT_TRUE(set_cpu_target(""));
  }
}

TEST(Attention, BatchAndThreadsDoNotMatter) {
  const AttentionOptions options = {.heads = 6, .kv_heads = 2, .head_dim = 32, .window = 20};
  const std::vector<Floats> streams = {random_qkv(options, 70, 1), random_qkv(options, 45, 2),
                                       random_qkv(options, 90, 3)};
  std::vector<Floats> expected;
  for (const Floats& stream : streams) expected.push_back(Runner(options, 1).run(stream, {4}));
  for (const int threads : {1, 2, 3}) {
    Runner batch(options, 3, threads);
    std::vector<Floats> got(3);
    std::vector<int> done(3, 0);
    for (int turn = 0; turn < 60; ++turn) {
      std::vector<Floats> x;
      for (int i = 0; i < 3; ++i) {
        const std::size_t s = static_cast<std::size_t>(i);
        const int total = static_cast<int>(streams[s].size()) / options.qkv_channels();
        const int rows =
            std::min((turn + i) % 3 == 0 ? 0 : (turn * 7 + i) % 6, total - done[s]);  // often idle
        x.push_back(rows_of(streams[s], options.qkv_channels(), done[s], done[s] + rows));
        done[s] += rows;
      }
      const std::vector<Floats> y = batch.step(x);
      for (std::size_t s = 0; s < 3; ++s) got[s].insert(got[s].end(), y[s].begin(), y[s].end());
    }
    EXPECT_EQ(got, expected) << threads << " threads";
  }
}

// The trap of a ring of exactly `window` slots: the new keys of a step must not push out old ones that the
// step's earlier rows still see. A change at position j must reach the rows j .. j + window - 1 and no other.
TEST(Attention, AChangeReachesExactlyTheWindowAtEveryStepSize) {
  const AttentionOptions options = {.heads = 2, .kv_heads = 2, .head_dim = 16, .window = 16};
  const int rows = 90, changed = 37;
  const std::size_t channels = static_cast<std::size_t>(options.out_channels());
  const Floats qkv = random_qkv(options, rows, 11);
  Floats other = qkv;
  const std::size_t row_size = static_cast<std::size_t>(options.qkv_channels());
  for (std::size_t c = channels; c < row_size; ++c) other[changed * row_size + c] += 1.0f;  // keys and values
  for (const int length : {1, 2, 3, 8, 16, 17, 48, 90}) {
    const Floats a = Runner(options, 1).run(qkv, {length}), b = Runner(options, 1).run(other, {length});
    for (int i = 0; i < rows; ++i) {
      const bool differs =
          rows_of(a, options.out_channels(), i, i + 1) != rows_of(b, options.out_channels(), i, i + 1);
      EXPECT_EQ(differs, i >= changed && i < changed + options.window)
          << "row " << i << ", steps of " << length;
    }
  }
}

TEST(Attention, SlotsThatAreNotVisibleMayHoldAnything) {
  for (const AttentionOptions& options : kCases) {
    const int rows = options.window + 40;
    const Floats qkv = random_qkv(options, rows, 12);
    Runner clean(options, 1), dirty(options, 1);
    float* const rings = reinterpret_cast<float*>(dirty.state(0) + 64);
    std::fill_n(rings, (attention_state_bytes(options) - 64) / sizeof(float),
                std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(dirty.run(qkv, {5}), clean.run(qkv, {5})) << "window " << options.window;
  }
}

TEST(Attention, NotANumberIsForgottenWithItsKey) {
  const AttentionOptions options = {.heads = 2, .kv_heads = 1, .head_dim = 16, .window = 6};
  Floats qkv = random_qkv(options, 40, 13);
  const Floats expected = Runner(options, 1).run(qkv, {40});
  const std::size_t row_size = static_cast<std::size_t>(options.qkv_channels());
  for (std::size_t c = 0; c < row_size; ++c) qkv[10 * row_size + c] = std::numeric_limits<float>::quiet_NaN();
  for (const int length : {1, 4, 40}) {
    const Floats got = Runner(options, 1).run(qkv, {length});
    for (int i = 0; i < 40; ++i) {
      if (i >= 10 && i < 16) continue;
      EXPECT_EQ(rows_of(got, options.out_channels(), i, i + 1),
                rows_of(expected, options.out_channels(), i, i + 1))
          << i;
    }
  }
}

// Far positions: only the position modulo 16 enters the order of sums, so a stream that starts late after
// zeros equals one that saw `window` zeros first.
TEST(Attention, LatePositionsGiveTheSameBits) {
  const AttentionOptions options = {.heads = 4, .kv_heads = 4, .head_dim = 16, .window = 48};
  const Floats qkv = random_qkv(options, 200, 14);
  Floats after_zeros(48 * static_cast<std::size_t>(options.qkv_channels()), 0.0f);
  after_zeros.insert(after_zeros.end(), qkv.begin(), qkv.end());
  const Floats reference = Runner(options, 1).run(after_zeros, {7});
  const Floats expected = rows_of(reference, options.out_channels(), 48, 248);
  for (const std::int64_t start : {16LL * 100'003, 16LL * 300'000'000'007}) {
    Runner late(options, 1);
    set_attention_position(late.state(0), start);
    EXPECT_EQ(late.run(qkv, {5}), expected);
    EXPECT_EQ(attention_position(late.state(0)), start + 200);
  }
}

TEST(Attention, InitWritesEveryByte) {
  const AttentionOptions options = {.heads = 3, .kv_heads = 3, .head_dim = 16, .window = 9};
  const std::size_t bytes = attention_state_bytes(options);
  EXPECT_EQ(bytes % 64, 0u);
  std::vector<std::byte> a(bytes, std::byte{0xAA}), b(bytes, std::byte{0x55});
  init_attention_state(options, a.data());
  init_attention_state(options, b.data());
  EXPECT_EQ(a, b);
  EXPECT_EQ(attention_position(a.data()), 0);
}

TEST(Attention, RefusesImpossibleOptions) {
  EXPECT_NO_THROW(check_attention({.heads = 4, .kv_heads = 2, .head_dim = 32, .window = 1}));
  EXPECT_THROW(check_attention({.heads = 4, .kv_heads = 3, .head_dim = 32, .window = 1}), UsageError);
  EXPECT_THROW(check_attention({.heads = 4, .kv_heads = 0, .head_dim = 32, .window = 1}), UsageError);
  EXPECT_THROW(check_attention({.heads = 0, .kv_heads = 1, .head_dim = 32, .window = 1}), UsageError);
  EXPECT_THROW(check_attention({.heads = 4, .kv_heads = 4, .head_dim = 24, .window = 1}), UsageError);
  EXPECT_THROW(check_attention({.heads = 4, .kv_heads = 4, .head_dim = 32, .window = 0}), UsageError);
}

}  // namespace
}  // namespace tessera::test
