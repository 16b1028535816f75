#include "metrics/winograd.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"
#include "metrics/winograd_kernels.h"

namespace tessera::metrics {
namespace {

constexpr std::int64_t kIn = kWinogradIn, kOut = kWinogradOut;
constexpr std::int64_t kTilesTogether = 48;  // about so many: their points stay in the cache

// From three weights of a row or column to six points.
constexpr double kWeightTransform[kIn][3] = {{1.0 / 4, 0, 0},
                                             {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                             {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                             {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                             {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                             {0, 0, 1}};

std::vector<float> transformed(const Tensor& weights, std::int64_t row, std::int64_t column) {
  const std::int64_t size = weights.dim(2) * weights.dim(3);
  std::vector<double> sums(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      const double factor = kWeightTransform[row][i] * kWeightTransform[column][j];
      const float* w = weights.f32() + (i * 3 + j) * size;
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += factor * static_cast<double>(w[k]);
    }
  }
  return {sums.begin(), sums.end()};
}

// Where the inputs and outputs of tiles lie; beyond the sound lie zeros, or a place to write what nobody
// reads.
struct Plane {
  std::int64_t rows = 0, columns = 0, channels = 0;
  template <class T>
  T* at(T* data, std::int64_t row, std::int64_t column, T* beyond) const {
    const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    return inside ? data + (row * columns + column) * channels : beyond;
  }
};

}  // namespace

WinogradConvolution::WinogradConvolution(const Tensor& weights, const Tensor& bias) : bias_(bias) {
  const Shape& s = weights.shape();
  const auto channels = static_cast<std::int64_t>(kWinogradChannels);
  if (s.rank() != 4 || s[0] != 3 || s[1] != 3 || s[2] % channels || s[3] % channels ||
      bias.shape() != Shape{s[3]}) {
    throw UsageError("expected weights [3, 3, C, O] and a bias [O], C and O multiples of 16, got " + s.str() +
                     " and " + bias.shape().str());
  }
  inputs_ = s[2];
  outputs_ = s[3];
  for (std::int64_t p = 0; p < kIn * kIn; ++p) {
    points_.push_back(PackedMatrix::pack(transformed(weights, p / kIn, p % kIn).data(),
                                         static_cast<int>(inputs_), static_cast<int>(outputs_), outputs_, 1,
                                         WeightType::f32));
  }
}

Tensor WinogradConvolution::apply(Tape& tape, const Tensor& x, bool pad_top, bool pad_bottom) const {
  if (x.shape().rank() != 4 || x.dim(0) != 1 || x.dim(3) != inputs_) {
    throw UsageError("expected [1, H, W, " + std::to_string(inputs_) + "], got " + x.shape().str());
  }
  const Plane in = {x.dim(1), x.dim(2), inputs_};
  const Plane out = {in.rows - 2 + pad_top + pad_bottom, in.columns, outputs_};
  if (out.rows < 1) throw UsageError("expected rows for at least one output, got " + x.shape().str());
  Tensor y = tape.make({1, out.rows, out.columns, outputs_});

  const std::int64_t across = (out.columns + kOut - 1) / kOut, down = (out.rows + kOut - 1) / kOut;
  const std::int64_t at_once = std::min(down, std::max<std::int64_t>(1, kTilesTogether / across));
  const std::int64_t capacity = at_once * across;
  const Tensor zeros = tape.zeros({inputs_});
  Tensor inputs = tape.make({kIn * kIn, capacity, inputs_});
  Tensor outputs = tape.make({kIn * kIn, capacity, outputs_});
  Tensor unread = tape.make({capacity, outputs_});
  std::vector<const float*> rows(static_cast<std::size_t>(capacity));

  for (std::int64_t begin = 0; begin < down; begin += at_once) {
    const std::int64_t tiles = std::min(at_once, down - begin) * across;
    tape.pool().parallel_for(static_cast<int>(tiles), [&](int tile) {
      const std::int64_t top = (begin + tile / across) * kOut - pad_top, left = tile % across * kOut - 1;
      std::array<const float*, kWinogradPoints> from = {};
      for (std::int64_t i = 0; i < kIn * kIn; ++i) {
        from[static_cast<std::size_t>(i)] = in.at(x.f32(), top + i / kIn, left + i % kIn, zeros.f32());
      }
      winograd_input(from.data(), static_cast<std::size_t>(inputs_), inputs.f32() + tile * inputs_,
                     static_cast<std::size_t>(capacity * inputs_));
    });
    for (std::int64_t p = 0; p < kIn * kIn; ++p) {
      GemmArgs product;
      for (std::int64_t i = 0; i < tiles; ++i) {
        rows[static_cast<std::size_t>(i)] = inputs.f32() + (p * capacity + i) * inputs_;
      }
      product.rows = std::span(rows).first(static_cast<std::size_t>(tiles));
      product.weights = &points_[static_cast<std::size_t>(p)];
      product.out = outputs.f32() + p * capacity * outputs_;
      product.out_stride = outputs_;
      gemm(product, tape.pool());
    }
    tape.pool().parallel_for(static_cast<int>(tiles), [&](int tile) {
      const std::int64_t top = (begin + tile / across) * kOut, left = tile % across * kOut;
      std::array<float*, static_cast<std::size_t>(kOut * kOut)> to = {};
      for (std::int64_t i = 0; i < kOut * kOut; ++i) {
        to[static_cast<std::size_t>(i)] =
            out.at(y.f32(), top + i / kOut, left + i % kOut, unread.f32() + tile * outputs_);
      }
      winograd_output(outputs.f32() + tile * outputs_, static_cast<std::size_t>(capacity * outputs_),
                      bias_.f32(), static_cast<std::size_t>(outputs_), to.data());
    });
  }
  return y;
}

}  // namespace tessera::metrics
