// The LSTM cell against double precision, over several steps, and under every instruction set.
#include "core/lstm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "tests/core/on_every_target.h"

namespace tessera {
namespace {

double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

TEST(LstmCell, AgreesWithDoublePrecisionOverSteps) {
  for (const std::size_t hidden : {1u, 15u, 16u, 70u}) {
    std::vector<float> cell(hidden, 0.0f), out(hidden);
    std::vector<double> true_cell(hidden, 0.0);
    for (unsigned step = 0; step < 20; ++step) {
      const std::vector<float> gates = test::noise(4 * hidden, 40 + step, 3.0f);
      lstm_cell(gates.data(), cell.data(), out.data(), static_cast<int>(hidden));
      for (std::size_t i = 0; i < hidden; ++i) {
        true_cell[i] = logistic(gates[hidden + i]) * true_cell[i] +
                       logistic(gates[i]) * std::tanh(double{gates[2 * hidden + i]});
        EXPECT_NEAR(cell[i], true_cell[i], 2e-6);
        EXPECT_NEAR(out[i], logistic(gates[3 * hidden + i]) * std::tanh(true_cell[i]), 1e-6);
      }
    }
  }
}

TEST(LstmCell, SaturatedGatesKeepOrReplaceTheCell) {
  // input, forget, candidate, output of two units: the first keeps its cell, the second takes the candidate.
  const std::vector<float> gates = {-200.0f, 200.0f, 200.0f, -200.0f, 50.0f, 50.0f, 200.0f, 200.0f};
  std::vector<float> cell = {0.75f, 0.75f}, out(2);
  lstm_cell(gates.data(), cell.data(), out.data(), 2);
  EXPECT_EQ(cell, (std::vector<float>{0.75f, 1.0f}));
  EXPECT_NEAR(out[0], std::tanh(0.75), 1e-7);
  EXPECT_NEAR(out[1], std::tanh(1.0), 1e-7);
}

TEST(LstmCell, SameBitsOnEveryTargetForEveryWidth) {
  for (std::size_t hidden = 0; hidden <= 70; ++hidden) {
    const std::vector<float> gates = test::noise(4 * hidden, 50, 4.0f);
    const std::vector<float> start = test::noise(hidden, 51);
    test::expect_same_on_every_target([&] {
      std::vector<float> cell = start, out(hidden);
      lstm_cell(gates.data(), cell.data(), out.data(), static_cast<int>(hidden));
      cell.insert(cell.end(), out.begin(), out.end());
      return cell;
    });
  }
}

TEST(LstmCell, RejectsANegativeWidth) {
  float v[4] = {};
  EXPECT_THROW(lstm_cell(v, v, v, -1), UsageError);
}

}  // namespace
}  // namespace tessera
