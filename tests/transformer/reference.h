// What the tests of this folder share: random weights, a plain double-precision transformer layer with the
// whole history in memory, and a runner that steps a batch of streams through a layer.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/layer.h"
#include "transformer/transformer_layer.h"

namespace tessera::test {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Values in [-scale, scale), the same on every platform.
Floats random_values(std::size_t count, float scale, std::uint32_t seed);

/// Unpacked weights, matrices [in, out]; an empty bias stands for none.
struct PlainLayer {
  Floats norm1, norm1_bias, qkv, qkv_bias, out, out_bias, norm2, norm2_bias, up, up_bias, down, down_bias;
};
PlainLayer random_layer(const TransformerOptions& options, bool biases, std::uint32_t seed);
TransformerLayerWeights pack(const TransformerOptions& options, const PlainLayer& plain);

/// qkv [rows, qkv_channels] -> [rows, out_channels]. Before the first row lie `zeros` positions whose keys
/// and values are zero.
Doubles plain_attention(const AttentionOptions& options, const Doubles& qkv, std::int64_t zeros);
/// What the layer gives for a stream whose first row has the given position (earlier keys and values: zero).
struct PlainStages {
  Doubles norm1, attn, norm2, mlp, out;
};
PlainStages plain_layer(const TransformerOptions& options, const PlainLayer& plain, const Doubles& x,
                        std::int64_t position);

/// Streams of one layer, each with its own state, stepped together on a workspace of exactly the declared
/// size.
class Batch {
 public:
  /// A step may have up to `rows` rows per stream.
  Batch(const Layer& layer, int streams, int rows, int threads = 1);

  /// One step; `x` holds the new rows of every stream.
  std::vector<Floats> step(const std::vector<Floats>& x, Workspace::Side side = Workspace::Side::low);
  std::byte* state(int stream) { return blocks_[static_cast<std::size_t>(stream)]; }
  Workspace& workspace() { return workspace_; }

 private:
  const Layer& layer_;
  ThreadPool pool_;
  Workspace workspace_;
  std::vector<Tensor> states_;
  std::vector<std::byte*> blocks_;
};

/// Rows [first, last) of x.
Floats rows_of(const Floats& x, int channels, int first, int last);
/// A stream of its own, stepped by the given lengths in turn until x is used up.
Floats run_split(const Layer& layer, const Floats& x, const std::vector<int>& lengths, int threads = 1);

/// EXPECTs |got - expected| <= tolerance everywhere.
void expect_near(const Floats& got, const Doubles& expected, double tolerance);

}  // namespace tessera::test
