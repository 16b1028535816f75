// Named parameters: first values, sharing, gradients, checkpoints.
#include "train/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/error.h"

namespace tessera::train {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

Tensor filled(const Shape& shape, float first) {
  Tensor tensor = Tensor::zeros(shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.f32()[i] = first + static_cast<float>(i);
  return tensor;
}

TEST(Parameters, KeepTheOrderOfCreation) {
  Parameters parameters;
  parameters.add("b", {2, 3});
  parameters.add("a", {4}, Init::zero());
  ASSERT_EQ(parameters.items().size(), 2u);
  EXPECT_EQ(parameters.items()[0].name, "b");
  EXPECT_EQ(parameters.items()[1].name, "a");
  EXPECT_EQ(parameters.count(), 10);
  EXPECT_EQ(parameters.find("a").shape(), (Shape{4}));
  EXPECT_FALSE(parameters.find("c").defined());
}

TEST(Parameters, FirstValuesDependOnSeedAndNameOnly) {
  Parameters one(7), other(7), reseeded(8);
  const Tensor a = one.add("a", {5, 5}), b = one.add("b", {5, 5});
  const Tensor b2 = other.add("b", {5, 5}), a2 = other.add("a", {5, 5});
  EXPECT_TRUE(same_bits(a, a2));
  EXPECT_TRUE(same_bits(b, b2));
  EXPECT_FALSE(same_bits(a, b));
  EXPECT_FALSE(same_bits(a, reseeded.add("a", {5, 5})));
}

TEST(Parameters, VarianceIsGainOverFanIn) {
  Parameters parameters(1);
  const Tensor w = parameters.add("w", {3, 9, 16, 64}, Init::fan_in(2.0f));
  double sum = 0, square = 0;
  for (std::int64_t i = 0; i < w.size(); ++i) {
    sum += w.f32()[i];
    square += static_cast<double>(w.f32()[i]) * w.f32()[i];
  }
  const double n = static_cast<double>(w.size()), variance = 2.0 / (3 * 9 * 16);
  EXPECT_NEAR(square / n, variance, 0.04 * variance);  // 5 deviations of the estimate
  EXPECT_NEAR(sum / n, 0.0, 5 * std::sqrt(variance / n));
}

TEST(Parameters, ConstantsAndGivenValues) {
  Parameters parameters;
  Tensor values = filled({3}, 1.0f);
  const Tensor given = parameters.add("given", values);
  values.f32()[0] = 9.0f;  // it was copied
  EXPECT_TRUE(same_bits(given, filled({3}, 1.0f)));
  EXPECT_EQ(parameters.add("ones", {2}, Init::constant(1.0f)).f32()[1], 1.0f);
  EXPECT_EQ(parameters.add("bias", {2}, Init::zero()).f32()[0], 0.0f);
}

TEST(Parameters, CopiesShareStorageAndGradient) {
  ThreadPool pool;
  Tape tape(pool);
  Parameters parameters;
  const Tensor held = parameters.add("w", {3});
  Tensor stepped = parameters.items()[0].tensor;
  stepped.f32()[1] = 5.0f;
  EXPECT_EQ(held.f32()[1], 5.0f);

  tape.backward(held, filled({3}, 1.0f));
  ASSERT_TRUE(gradient_of(stepped).defined());
  EXPECT_TRUE(same_bits(gradient_of(stepped), filled({3}, 1.0f)));
  parameters.clear_gradients();
  EXPECT_FALSE(gradient_of(held).defined());
}

TEST(Parameters, ValuesGoThroughACheckpoint) {
  Parameters from(1), to(2);
  from.add("a", {2, 2});
  from.add("b", {3});
  to.add("b", {3});
  const Tensor held = to.add("a", {2, 2});
  const NamedTensors values = from.values();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_FALSE(values[0].second.recorded());
  ASSERT_TRUE(to.set_values(values));
  EXPECT_TRUE(same_bits(held, from.find("a")));  // in place
  EXPECT_TRUE(same_bits(to.find("b"), from.find("b")));
}

TEST(Parameters, ACheckpointThatDoesNotFitChangesNothing) {
  Parameters parameters(1);
  const Tensor a = parameters.add("a", {2}), b = parameters.add("b", {3});
  const Tensor a_before = filled({2}, 1.0f), b_before = filled({3}, 2.0f);
  ASSERT_TRUE(parameters.set_values(NamedTensors{{"a", a_before}, {"b", b_before}}));
  const Tensor other = filled({2}, 7.0f);
  const auto error = [&](const NamedTensors& values) {
    const Result<void> result = parameters.set_values(values);
    EXPECT_TRUE(same_bits(a, a_before) && same_bits(b, b_before));
    if (result) return std::string("none");
    EXPECT_EQ(result.error().code, ErrorCode::mismatch);
    return result.error().message;
  };
  const auto says = [&](const NamedTensors& values, const std::string& part) {
    const std::string message = error(values);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says({{"a", other}}, "\"b\"");
  says({{"a", other}, {"b", filled({4}, 0)}}, "\"b\" as f32 [3], got f32 [4]");
  says({{"a", Tensor::zeros({2}, DType::bf16)}, {"b", b_before}}, "\"a\" as f32 [2], got bf16 [2]");
  says({{"a", other}, {"a", other}, {"b", b_before}}, "twice");
  says({{"a", other}, {"b", b_before}, {"c", other}}, "\"c\"");
  says({{"a", Tensor()}, {"b", b_before}}, "\"a\"");
}

TEST(Parameters, WrongUseThrows) {
  Parameters parameters;
  parameters.add("a", {2});
  EXPECT_THROW(parameters.add("a", {2}), UsageError);
  EXPECT_THROW(parameters.add("", {2}), UsageError);
  EXPECT_THROW(parameters.add("b", Tensor()), UsageError);
  EXPECT_THROW(parameters.add("b", Tensor::zeros({2}, DType::i32)), UsageError);
  EXPECT_EQ(parameters.items().size(), 1u);
}

}  // namespace
}  // namespace tessera::train
