// Written for plainness: one loop per sum, everything in double, libm functions, no state.
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// [rows, k] times [k, n], plus bias
Doubles multiply(const Doubles& x, const Floats& weight, const Floats& bias, int k, int n) {
  const std::size_t rows = x.size() / to_size(k);
  Doubles y(rows * to_size(n));
  for (std::size_t m = 0; m < rows; ++m) {
    double* const row = y.data() + m * to_size(n);
    for (std::size_t j = 0; j < bias.size(); ++j) row[j] = static_cast<double>(bias[j]);
    for (std::size_t i = 0; i < to_size(k); ++i) {
      const double a = x[m * to_size(k) + i];
      for (std::size_t j = 0; j < to_size(n); ++j)
        row[j] += a * static_cast<double>(weight[i * to_size(n) + j]);
    }
  }
  return y;
}

Doubles normalize(const TransformerOptions& options, const Doubles& x, const Floats& weight,
                  const Floats& bias) {
  const std::size_t channels = to_size(options.channels);
  Doubles y(x.size());
  for (std::size_t start = 0; start < x.size(); start += channels) {
    double mean = 0, square = 0;
    if (options.norm == NormKind::layer_norm) {
      for (std::size_t c = 0; c < channels; ++c) mean += x[start + c] / options.channels;
    }
    for (std::size_t c = 0; c < channels; ++c) square += std::pow(x[start + c] - mean, 2) / options.channels;
    for (std::size_t c = 0; c < channels; ++c) {
      const double value = (x[start + c] - mean) / std::sqrt(square + static_cast<double>(options.norm_eps));
      y[start + c] =
          value * static_cast<double>(weight[c]) + (bias.empty() ? 0.0 : static_cast<double>(bias[c]));
    }
  }
  return y;
}

void rotate(const TransformerOptions& options, Doubles& qkv, std::int64_t position) {
  const AttentionOptions& attention = options.attention;
  const int dim = attention.head_dim, row_size = attention.qkv_channels();
  const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / row_size;
  for (std::int64_t m = 0; m < rows; ++m) {
    for (int head = 0; head < attention.heads + attention.kv_heads; ++head) {
      double* const x = qkv.data() + m * row_size + head * dim;
      for (int i = 0; i < dim / 2; ++i) {
        const double angle = static_cast<double>(position + m) * std::pow(options.theta, -2.0 * i / dim);
        double& a = options.rope == RopeLayout::half ? x[i] : x[2 * i];
        double& b = options.rope == RopeLayout::half ? x[i + dim / 2] : x[2 * i + 1];
        const double first = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = first;
      }
    }
  }
}

double activation(Activation f, double x) {
  switch (f) {
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    default:
      ADD_FAILURE() << "no reference for this activation";
      return x;
  }
}

}  // namespace

Floats random_values(std::size_t count, float scale, std::uint32_t seed) {
  std::mt19937 generator(seed);
  Floats values(count);
  for (float& value : values) {
    value = scale * (static_cast<float>(generator() >> 8) * 0x1p-23f - 1.0f);
  }
  return values;
}

PlainLayer random_layer(const TransformerOptions& options, bool biases, std::uint32_t seed) {
  const auto matrix = [&](int k, int n) {
    return random_values(to_size(k) * to_size(n), 1.7f / std::sqrt(static_cast<float>(k)), seed++);
  };
  const auto vector = [&](int n, float middle, float scale) {
    Floats values = random_values(to_size(n), scale, seed++);
    for (float& value : values) value += middle;
    return values;
  };
  const auto bias = [&](int n, bool wanted) { return wanted ? vector(n, 0.0f, 0.3f) : Floats(); };
  const int channels = options.channels, qkv = options.attention.qkv_channels();
  const bool norm_bias = options.norm == NormKind::layer_norm;
  PlainLayer plain;
  plain.norm1 = vector(channels, 1.0f, 0.5f);
  plain.norm1_bias = bias(channels, norm_bias && biases);
  plain.qkv = matrix(channels, qkv);
  plain.qkv_bias = bias(qkv, biases);
  plain.out = matrix(options.attention.out_channels(), channels);
  plain.out_bias = bias(channels, biases);
  plain.norm2 = vector(channels, 1.0f, 0.5f);
  plain.norm2_bias = bias(channels, norm_bias && biases);
  plain.up = matrix(channels, options.hidden);
  plain.up_bias = bias(options.hidden, biases);
  plain.down = matrix(options.hidden, channels);
  plain.down_bias = bias(channels, biases);
  return plain;
}

TransformerLayerWeights pack(const TransformerOptions& options, const PlainLayer& plain) {
  const auto linear = [](const Floats& weight, const Floats& bias, int k, int n) {
    return LinearWeights{PackedMatrix::pack(weight.data(), k, n, n, 1, WeightType::f32), bias};
  };
  const int channels = options.channels;
  return {.norm1 = {plain.norm1, plain.norm1_bias},
          .qkv = linear(plain.qkv, plain.qkv_bias, channels, options.attention.qkv_channels()),
          .out = linear(plain.out, plain.out_bias, options.attention.out_channels(), channels),
          .norm2 = {plain.norm2, plain.norm2_bias},
          .up = linear(plain.up, plain.up_bias, channels, options.hidden),
          .down = linear(plain.down, plain.down_bias, options.hidden, channels)};
}

Doubles plain_attention(const AttentionOptions& options, const Doubles& qkv, std::int64_t zeros) {
  const int dim = options.head_dim, row_size = options.qkv_channels();
  const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / row_size;
  Doubles out(to_size(rows * options.out_channels()));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (int head = 0; head < options.heads; ++head) {
      const int kv_head = head / (options.heads / options.kv_heads);
      const double* const q = qkv.data() + i * row_size + head * dim;
      const double* const keys = qkv.data() + (options.heads + kv_head) * dim;
      const double* const values = keys + options.kv_heads * dim;
      const std::int64_t first = std::max(i - options.window + 1, -zeros);
      Doubles score;
      for (std::int64_t j = first; j <= i; ++j) {
        const double dot = j < 0 ? 0.0 : std::inner_product(q, q + dim, keys + j * row_size, 0.0);
        score.push_back(dot / std::sqrt(dim));
      }
      const double largest = *std::max_element(score.begin(), score.end());
      double sum = 0;
      for (double& s : score) sum += s = std::exp(s - largest);
      double* const to = out.data() + i * options.out_channels() + head * dim;
      for (std::int64_t j = std::max<std::int64_t>(first, 0); j <= i; ++j) {
        for (int d = 0; d < dim; ++d) to[d] += score[to_size(j - first)] / sum * values[j * row_size + d];
      }
    }
  }
  return out;
}

PlainStages plain_layer(const TransformerOptions& options, const PlainLayer& plain, const Doubles& x,
                        std::int64_t position) {
  const int channels = options.channels;
  const auto plus = [](const Doubles& a, const Doubles& b) {
    Doubles sum(a);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
    return sum;
  };
  PlainStages stages;
  stages.norm1 = normalize(options, x, plain.norm1, plain.norm1_bias);
  Doubles qkv = multiply(stages.norm1, plain.qkv, plain.qkv_bias, channels, options.attention.qkv_channels());
  rotate(options, qkv, position);
  stages.attn = multiply(plain_attention(options.attention, qkv, position), plain.out, plain.out_bias,
                         options.attention.out_channels(), channels);
  const Doubles middle = plus(x, stages.attn);
  stages.norm2 = normalize(options, middle, plain.norm2, plain.norm2_bias);
  Doubles hidden = multiply(stages.norm2, plain.up, plain.up_bias, channels, options.hidden);
  for (double& value : hidden) value = activation(options.activation, value);
  stages.mlp = multiply(hidden, plain.down, plain.down_bias, options.hidden, channels);
  stages.out = plus(middle, stages.mlp);
  return stages;
}

Batch::Batch(const Layer& layer, int streams, int rows, int threads)
    : layer_(layer),
      pool_(threads),
      workspace_(layer.workspace_bytes(streams, rows) + sequences_bytes(streams, rows, layer.in_channels())) {
  for (int i = 0; i < streams; ++i) {
    states_.push_back(Tensor::zeros({static_cast<std::int64_t>(layer.state_bytes())}, DType::u8));
    blocks_.push_back(states_.back().as<std::byte>());
    layer.init_state(blocks_.back());
  }
}

std::vector<Floats> Batch::step(const std::vector<Floats>& x, Workspace::Side side) {
  const Workspace::Mark mark = workspace_.mark();
  const std::size_t channels = to_size(layer_.in_channels());
  std::vector<int> lengths;
  for (const Floats& rows : x) lengths.push_back(static_cast<int>(rows.size() / channels));
  const std::unique_ptr<bool[]> ends = std::make_unique<bool[]>(x.size());
  Sequences sequences =
      allocate_sequences(workspace_, side, lengths, {ends.get(), x.size()}, layer_.in_channels());
  float* to = sequences.rows.f32();
  for (const Floats& rows : x) to = std::copy(rows.begin(), rows.end(), to);

  StepContext context{workspace_, pool_};
  const Workspace::Mark before = workspace_.mark();
  const Sequences y = layer_.step(sequences, States(blocks_), context);
  EXPECT_EQ(y.rows.raw(), sequences.rows.raw()) << "changed in place";
  EXPECT_EQ(workspace_.mark().low, before.low) << "scratch released";
  EXPECT_EQ(workspace_.mark().high, before.high) << "scratch released";

  std::vector<Floats> result;
  const float* from = y.rows.f32();
  for (const int length : y.lengths) {
    const std::size_t count = to_size(length) * channels;
    result.emplace_back(from, from + count);
    from += count;
  }
  workspace_.release(side, mark);
  return result;
}

Floats rows_of(const Floats& x, int channels, int first, int last) {
  return {x.begin() + first * channels, x.begin() + last * channels};
}

Floats run_split(const Layer& layer, const Floats& x, const std::vector<int>& lengths, int threads) {
  const int channels = layer.in_channels(), total = static_cast<int>(x.size()) / channels;
  Batch batch(layer, 1, *std::max_element(lengths.begin(), lengths.end()), threads);
  Floats y;
  int done = 0;
  for (std::size_t turn = 0; done < total; ++turn) {
    const int rows = std::min(lengths[turn % lengths.size()], total - done);
    const Floats part = batch.step({rows_of(x, channels, done, done + rows)}).front();
    y.insert(y.end(), part.begin(), part.end());
    done += rows;
  }
  return y;
}

void expect_near(const Floats& got, const Doubles& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(got[i]) - expected[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  EXPECT_LE(worst, tolerance);
}

}  // namespace tessera::test
