#include "tests/bench/mimi_cost.h"

#include <algorithm>

namespace tessera::bench {
namespace {

using test::MimiSizes;

// `rows` outputs of a product with a [k, n] matrix.
void product(Cost& cost, double rows, double k, double n) {
  cost.flops += 2 * rows * k * n;
  cost.bytes += 4 * k * n;
}

void residual(Cost& cost, double rows, double channels) {
  product(cost, rows, 3 * channels, channels / 2);
  product(cost, rows, channels / 2, channels);
}

void transformer(Cost& cost, const MimiSizes& sizes) {
  for (int i = 0; i < sizes.layers; ++i) {
    product(cost, 2, sizes.channels, 3.0 * sizes.channels);
    product(cost, 2, sizes.channels, sizes.channels);
    product(cost, 2, sizes.channels, sizes.hidden);
    product(cost, 2, sizes.hidden, sizes.channels);
  }
}

// Samples per row at 25 Hz.
int hop(const MimiSizes& sizes) {
  int product = 1;
  for (const int ratio : sizes.ratios) product *= ratio;
  return product;
}

}  // namespace

double Cost::roofline_s(const MachinePeak& peak) const {
  return std::max(flops / peak.flops, bytes / peak.bytes_per_second);
}

Cost mimi_encode_cost(const MimiSizes& sizes, int codebooks) {
  Cost cost;
  double rows = 2.0 * hop(sizes), channels = sizes.filters;
  product(cost, rows, 7, channels);
  for (auto ratio = sizes.ratios.rbegin(); ratio != sizes.ratios.rend(); ++ratio) {
    residual(cost, rows, channels);
    rows /= *ratio;
    product(cost, rows, 2 * *ratio * channels, 2 * channels);
    channels *= 2;
  }
  product(cost, rows, 3 * channels, sizes.channels);
  transformer(cost, sizes);
  product(cost, 1, 4.0 * sizes.channels, sizes.channels);
  for (int half = 0; half < std::min(codebooks, 2); ++half)
    product(cost, 1, sizes.channels, sizes.codebook_dim);
  for (int i = 0; i < codebooks; ++i) product(cost, 1, sizes.codebook_dim, sizes.codebook_size);
  return cost;
}

Cost mimi_decode_cost(const MimiSizes& sizes, int codebooks) {
  Cost cost;
  for (int half = 0; half < std::min(codebooks, 2); ++half)
    product(cost, 1, sizes.codebook_dim, sizes.channels);
  transformer(cost, sizes);
  double rows = 2, channels = sizes.filters << sizes.ratios.size();
  product(cost, rows, 7.0 * sizes.channels, channels);
  for (const int ratio : sizes.ratios) {
    product(cost, rows, 2 * channels, ratio * channels / 2);
    rows *= ratio;
    channels /= 2;
    residual(cost, rows, channels);
  }
  product(cost, rows, 3 * channels, 1);
  return cost;
}

}  // namespace tessera::bench
