#include "core/spectral.h"

#include <cmath>
#include <string>

#include "core/conv1d.h"
#include "core/error.h"
#include "core/exact_math.h"

namespace tessera {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// cos and sin of a fraction of a turn, reduced in integers first: no error grows with the index.
double turn_cos(std::int64_t part, std::int64_t turn) {
  return exact_cos(2 * kPi * static_cast<double>(part % turn) / static_cast<double>(turn));
}
double turn_sin(std::int64_t part, std::int64_t turn) {
  return exact_sin(2 * kPi * static_cast<double>(part % turn) / static_cast<double>(turn));
}

void check_hop(const char* op, int length, int hop) {
  if (hop < 1 || length < hop || length % 2) {
    fail(op, "an even length of at least the hop, which is at least 1",
         std::to_string(length) + " and " + std::to_string(hop));
  }
}

// [2 * bins, length]: row k holds the weights of the real part of bin k, row bins + k those of the imaginary
// part.
std::vector<float> stft_basis(const std::vector<double>& weights) {
  const int length = static_cast<int>(weights.size()), bins = length / 2 + 1;
  std::vector<float> basis(to_size(2 * bins) * weights.size());
  for (int k = 0; k < bins; ++k) {
    for (int n = 0; n < length; ++n) {
      const std::int64_t part = static_cast<std::int64_t>(k) * n;
      basis[to_size(k) * weights.size() + to_size(n)] =
          static_cast<float>(weights[to_size(n)] * turn_cos(part, length));
      basis[to_size(bins + k) * weights.size() + to_size(n)] =
          static_cast<float>(-weights[to_size(n)] * turn_sin(part, length));
    }
  }
  return basis;
}

std::unique_ptr<Layer> analysis(const std::vector<float>& basis, int coefficients, int length, int hop) {
  return std::make_unique<Conv1d>(
      Conv1dOptions{.out_channels = coefficients, .kernel = length, .stride = hop}, basis,
      std::span<const float>());
}

std::unique_ptr<Layer> synthesis(const std::vector<float>& basis, int coefficients, int length, int hop) {
  return std::make_unique<ConvTranspose1d>(
      Conv1dOptions{.in_channels = coefficients, .kernel = length, .stride = hop}, basis,
      std::span<const float>());
}

}  // namespace

std::vector<float> mdct_basis(int hop) {
  check_hop("mdct", 2 * hop, hop);
  const int length = 2 * hop;
  std::vector<float> basis(to_size(hop) * to_size(length));
  for (int k = 0; k < hop; ++k) {
    for (int n = 0; n < length; ++n) {
      const std::int64_t part =
          static_cast<std::int64_t>(2 * n + 1 + hop) * (2 * k + 1);  // in 1 / (8 hop) of a turn
      const double window = turn_sin(2 * n + 1, 8 * static_cast<std::int64_t>(hop));
      basis[to_size(k) * to_size(length) + to_size(n)] = static_cast<float>(
          std::sqrt(2.0 / hop) * turn_cos(part, 8 * static_cast<std::int64_t>(hop)) * window);
    }
  }
  return basis;
}

std::vector<float> hann_window(int length) {
  std::vector<float> window;
  for (int n = 0; n < length; ++n) window.push_back(static_cast<float>(0.5 - 0.5 * turn_cos(n, length)));
  return window;
}

std::unique_ptr<Layer> mdct(int hop) {
  return analysis(mdct_basis(hop), hop, 2 * hop, hop);
}
std::unique_ptr<Layer> inverse_mdct(int hop) {
  return synthesis(mdct_basis(hop), hop, 2 * hop, hop);
}

std::unique_ptr<Layer> stft(const std::vector<float>& window, int hop) {
  const int length = static_cast<int>(window.size());
  check_hop("stft", length, hop);
  return analysis(stft_basis({window.begin(), window.end()}), 2 * (length / 2 + 1), length, hop);
}

std::unique_ptr<Layer> inverse_stft(const std::vector<float>& window, int hop) {
  const int length = static_cast<int>(window.size()), bins = length / 2 + 1;
  check_hop("inverse_stft", length, hop);
  if (length % hop)
    fail("inverse_stft", "a hop that divides the length " + std::to_string(length), std::to_string(hop));
  std::vector<double> weights(window.begin(), window.end());
  for (int n = 0; n < hop; ++n) {
    double sum = 0;
    for (int m = n; m < length; m += hop) sum += static_cast<double>(window[to_size(m)]) * window[to_size(m)];
    if (sum < 1e-9)
      fail("inverse_stft", "squared windows that add up to more than nothing everywhere",
           std::to_string(sum));
    for (int m = n; m < length; m += hop) weights[to_size(m)] /= sum * length;
  }
  std::vector<float> basis = stft_basis(weights);
  for (int k = 1; k < bins - 1; ++k) {  // these stand for their mirror images, too
    for (const int row : {k, bins + k}) {
      for (int n = 0; n < length; ++n) basis[to_size(row) * to_size(length) + to_size(n)] *= 2;
    }
  }
  return synthesis(basis, 2 * bins, length, hop);
}

}  // namespace tessera
