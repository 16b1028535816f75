// Gradients by central differences at two steps, and the comparison of bits.
#include "tests/autograd/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cpu.h"
#include "core/random.h"

namespace tessera::test {
namespace {

struct Gradients {
  Tensor output;
  std::vector<Tensor> inputs;
};

/// Copies: what a tape made may be used again.
Tensor copy_of(const Tensor& x) {
  if (!x.defined()) return x;
  Tensor copy = Tensor::zeros(x.shape());
  std::memcpy(copy.raw(), x.raw(), x.bytes());
  return copy;
}

/// Output and gradients of c . operation, with gradients to all inputs or, if `only` is not negative, to that
/// one.
Gradients differentiate(const Operation& operation, const std::vector<Tensor>& inputs,
                        const GradientCheck& check, int threads, int only = -1) {
  ThreadPool pool(threads);
  Tape tape(pool, check.precision);
  std::vector<Tensor> parameters;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool flows = only < 0 || static_cast<std::size_t>(only) == i;
    parameters.push_back(flows ? parameter(inputs[i]) : inputs[i]);
  }
  const Tensor y = operation(tape, parameters);
  Gradients result;
  result.output = copy_of(y);
  if (!y.recorded()) {
    ADD_FAILURE() << "no gradient flows through the operation";
    return result;
  }
  tape.backward(y, random_tensor(y.shape(), 99));
  for (const Tensor& p : parameters) result.inputs.push_back(copy_of(gradient_of(p)));
  return result;
}

void expect_same(const Gradients& got, const Gradients& want, const std::string& what) {
  expect_same_bits(got.output, want.output, what + ": output");
  ASSERT_EQ(got.inputs.size(), want.inputs.size());
  for (std::size_t i = 0; i < want.inputs.size(); ++i) {
    expect_same_bits(got.inputs[i], want.inputs[i], what + ": gradient of input " + std::to_string(i));
  }
}

/// What must not change the bits.
void expect_invariant(const Operation& operation, const std::vector<Tensor>& inputs,
                      const GradientCheck& check, const Gradients& want) {
  ThreadPool pool;
  Tape tape(pool, check.precision);
  const Tensor plain = operation(tape, inputs);
  EXPECT_FALSE(plain.recorded()) << "recorded, although no input is";
  EXPECT_EQ(tape.recorded(), 0u);
  expect_same_bits(plain, want.output, "not recorded");
  for (const int threads : check.threads) {
    expect_same(differentiate(operation, inputs, check, threads), want, std::to_string(threads) + " threads");
  }
  for (std::size_t i = 0; inputs.size() > 1 && i < inputs.size(); ++i) {
    const Gradients alone = differentiate(operation, inputs, check, 1, static_cast<int>(i));
    ASSERT_EQ(alone.inputs.size(), inputs.size());
    expect_same_bits(alone.inputs[i], want.inputs[i], "gradient of input " + std::to_string(i) + " alone");
  }
  if (!check.every_target) return;
  for (const std::string& target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(target)) << target;
    const Gradients got = differentiate(operation, inputs, check, 1);
    ASSERT_TRUE(set_cpu_target(""));
    expect_same(got, want, target);
  }
}

/// The derivative of c . operation along element `at` of input `which`: differences at one and two steps,
/// combined so that their errors of third order cancel. Outputs that do not move cancel exactly.
double difference(const Operation& operation, Tape& tape, std::vector<Tensor> inputs, std::size_t which,
                  std::int64_t at, double step) {
  const Tensor x = inputs[which];
  Tensor moved = copy_of(x);
  inputs[which] = moved;
  const float centre = x.f32()[at];
  const double reach = step * std::max(1.0, std::abs(static_cast<double>(centre)));
  const auto slope = [&](double distance) {
    const float high = static_cast<float>(centre + distance), low = static_cast<float>(centre - distance);
    moved.f32()[at] = high;
    const Tensor above = copy_of(operation(tape, inputs));  // it may share memory with x
    moved.f32()[at] = low;
    const Tensor below = copy_of(operation(tape, inputs));
    const Tensor c = random_tensor(above.shape(), 99);
    double sum = 0;
    for (std::int64_t i = 0; i < c.size(); ++i) {
      sum += static_cast<double>(c.f32()[i]) *
             (static_cast<double>(above.f32()[i]) - static_cast<double>(below.f32()[i]));
    }
    return sum / (static_cast<double>(high) - static_cast<double>(low));
  };
  return (4 * slope(reach) - slope(2 * reach)) / 3;
}

}  // namespace

void expect_gradients(const Operation& operation, const std::vector<Tensor>& inputs,
                      const GradientCheck& check) {
  const Gradients analytic = differentiate(operation, inputs, check, 1);
  ASSERT_EQ(analytic.inputs.size(), inputs.size());
  ThreadPool pool;
  Tape tape(pool, check.precision);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("input " + std::to_string(i));
    const Tensor& gradient = analytic.inputs[i];
    ASSERT_TRUE(gradient.defined()) << "no gradient";
    ASSERT_EQ(gradient.shape(), inputs[i].shape());
    const std::int64_t size = inputs[i].size(), samples = std::min(size, check.samples);
    Random random(7, i);
    std::vector<std::pair<std::int64_t, double>> differences;
    double scale = 0;
    for (std::int64_t s = 0; s < samples; ++s) {
      std::int64_t at = size <= check.samples ? s : random.below(size);
      if (size > check.samples && s % 2 == 0) {  // half of them where something happens
        for (std::int64_t i = 1; i < size && gradient.f32()[at] == 0; ++i) at = (at + 1) % size;
      }
      differences.emplace_back(at, difference(operation, tape, inputs, i, at, check.step));
      scale = std::max(
          {scale, std::abs(differences.back().second), std::abs(static_cast<double>(gradient.f32()[at]))});
    }
    EXPECT_GT(scale, 0) << "all sampled gradients are 0";
    for (const auto& [at, want] : differences) {
      ASSERT_NEAR(gradient.f32()[at], want, check.tolerance * scale) << "element " << at;
    }
  }
  expect_invariant(operation, inputs, check, analytic);
}

void expect_operation(const OperationCase& c) {
  SCOPED_TRACE(c.name);
  ThreadPool pool;
  Tape tape(pool, c.check.precision);
  const Tensor y = c.operation(tape, c.inputs);
  ASSERT_EQ(y.shape(), c.shape) << y.shape().str() << " for " << c.shape.str();
  std::vector<std::vector<double>> inputs;
  for (const Tensor& input : c.inputs) inputs.push_back(values_of(input));
  const std::vector<double> want = c.reference(inputs);
  ASSERT_EQ(static_cast<std::int64_t>(want.size()), y.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(y.f32()[i], want[i], c.tolerance * std::max(1.0, std::abs(want[i]))) << "element " << i;
  }
  expect_gradients(c.operation, c.inputs, c.check);
}

Tensor random_tensor(const Shape& shape, std::uint64_t seed, float low, float high) {
  Tensor x = Tensor::zeros(shape);
  Random random(seed);
  for (std::int64_t i = 0; i < x.size(); ++i) x.f32()[i] = low + (high - low) * random.uniform();
  return x;
}

Tensor random_nonzero(const Shape& shape, std::uint64_t seed, float low, float high) {
  Tensor x = random_tensor(shape, seed, low, high);
  Random random(seed, 1);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (random.below(2)) x.f32()[i] = -x.f32()[i];
  }
  return x;
}

Tensor random_distinct(const Shape& shape, std::uint64_t seed) {
  Tensor x = Tensor::zeros(shape);
  const double spacing = 2.0 / static_cast<double>(std::max<std::int64_t>(x.size() - 1, 1));
  Random random(seed);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.f32()[i] = static_cast<float>(static_cast<double>(i) * spacing - 1.0);
    std::swap(x.f32()[i], x.f32()[random.below(i + 1)]);
  }
  return x;
}

std::vector<double> values_of(const Tensor& x) {
  return {x.f32(), x.f32() + x.size()};
}

void expect_same_bits(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.defined(), want.defined()) << what;
  if (!want.defined()) return;
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(std::memcmp(got.f32() + i, want.f32() + i, sizeof(float)), 0)
        << what << ", element " << i << ": " << got.f32()[i] << " and " << want.f32()[i];
  }
}

}  // namespace tessera::test
