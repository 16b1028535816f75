// The tape: what is recorded, how gradients gather, recomputation, memory, and what is refused.
#include "core/autograd/tape.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/autograd/elementwise.h"
#include "core/autograd/reduce.h"
#include "core/error.h"
#include "tests/autograd/gradient_check.h"

namespace tessera {
namespace {

using test::expect_gradients;
using test::expect_same_bits;
using test::random_tensor;

Tensor scalar(float value) {
  Tensor x = Tensor::zeros({1});
  *x.f32() = value;
  return x;
}

float gradient_at(const Tensor& parameter, std::int64_t i = 0) {
  return gradient_of(parameter).f32()[i];
}

class TapeTest : public testing::Test {
 protected:
  ThreadPool pool_{2};
  Tape tape_{pool_};
};

TEST_F(TapeTest, AnInputMayBeUsedTwice) {
  const Tensor x = parameter(scalar(3.0f));
  tape_.backward(ops::add(tape_, x, x));
  EXPECT_EQ(gradient_at(x), 2.0f);
  clear_gradient(x);
  EXPECT_FALSE(gradient_of(x).defined());
  tape_.backward(ops::mul(tape_, x, x));
  EXPECT_EQ(gradient_at(x), 6.0f);
}

TEST_F(TapeTest, PathsThatMeetAgain) {
  const test::Operation diamond = [](Tape& tape, std::span<const Tensor> in) {
    const Tensor a = ops::activate(tape, Activation::tanh, in[0]), b = ops::square(tape, a);
    const Tensor c = ops::add(tape, a, b);
    return ops::mul(tape, ops::add(tape, c, a), ops::sub(tape, b, in[1]));
  };
  expect_gradients(diamond, {random_tensor({3, 5}, 1), random_tensor({3, 5}, 2)});
}

TEST_F(TapeTest, SharedGradientsStayApart) {
  // a and b are given one gradient tensor; what is added to that of a must not show in that of b.
  const Tensor a = parameter(scalar(1.0f)), b = parameter(scalar(2.0f));
  tape_.backward(ops::add(tape_, ops::affine(tape_, a, 10.0f), ops::add(tape_, a, b)));
  EXPECT_EQ(gradient_at(a), 11.0f);
  EXPECT_EQ(gradient_at(b), 1.0f);
  tape_.backward(ops::square(tape_, a));
  EXPECT_EQ(gradient_at(a), 13.0f);
  EXPECT_EQ(gradient_at(b), 1.0f);
}

TEST_F(TapeTest, GradientsThatAreHeldDoNotChange) {
  const Tensor x = parameter(scalar(2.0f));
  tape_.backward(ops::square(tape_, x));
  const Tensor held = gradient_of(x);
  tape_.backward(ops::square(tape_, x));
  EXPECT_EQ(*held.f32(), 4.0f);
  EXPECT_EQ(gradient_at(x), 8.0f);
}

TEST_F(TapeTest, GradientsGatherOverCalls) {
  const Tensor x = parameter(random_tensor({7}, 1));
  for (int i = 0; i < 3; ++i) tape_.backward(ops::sum(tape_, ops::affine(tape_, x, 2.0f)));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(gradient_at(x, i), 6.0f);
}

TEST_F(TapeTest, OnlyWhatDependsOnAParameterIsRecorded) {
  const Tensor x = random_tensor({3}, 1);
  EXPECT_FALSE(ops::square(tape_, x).recorded());
  EXPECT_EQ(tape_.recorded(), 0u);
  const Tensor p = parameter(x), y = ops::square(tape_, p);
  EXPECT_TRUE(p.recorded());
  EXPECT_TRUE(y.recorded());
  EXPECT_FALSE(y.detached().recorded());
  EXPECT_FALSE(ops::square(tape_, y.detached()).recorded());
  EXPECT_EQ(tape_.recorded(), 1u);
  tape_.clear();
  EXPECT_EQ(tape_.recorded(), 0u);
}

TEST_F(TapeTest, NothingIsRecordedInAPause) {
  const Tensor p = parameter(random_tensor({3}, 1));
  {
    const Tape::Pause outer(tape_);
    {
      const Tape::Pause inner(tape_);
      EXPECT_FALSE(ops::square(tape_, p).recorded());
    }
    EXPECT_FALSE(ops::square(tape_, p).recorded());
  }
  EXPECT_TRUE(ops::square(tape_, p).recorded());
}

TEST_F(TapeTest, GradientsOfGradientsAreNotRecorded) {
  const Tensor p = parameter(random_tensor({3}, 1));
  tape_.backward(ops::sum(tape_, ops::square(tape_, ops::square(tape_, p))));
  EXPECT_EQ(tape_.recorded(), 0u);
  EXPECT_FALSE(gradient_of(p).recorded());
}

TEST_F(TapeTest, SeveralLossesThenTheRest) {
  const Tensor p = parameter(random_tensor({5}, 1));
  const auto network = [&] { return ops::activate(tape_, Activation::tanh, p); };
  const auto first = [&](const Tensor& y) { return ops::sum(tape_, ops::square(tape_, y)); };
  const auto second = [&](const Tensor& y) {
    return ops::mean(tape_, ops::activate(tape_, Activation::exp, y));
  };

  const Tensor y = network(), here = parameter(y);
  const std::size_t since = tape_.recorded();
  ASSERT_EQ(since, 1u);
  const std::array<Tensor, 2> losses = {first(here), second(here)};
  Tensor one = scalar(1.0f);
  tape_.backward(losses[1], one, since);
  EXPECT_EQ(tape_.recorded(), since);
  tape_.backward(first(here), one, since);
  EXPECT_FALSE(gradient_of(p).defined());
  tape_.backward(y, gradient_of(here));
  EXPECT_EQ(tape_.recorded(), 0u);
  const Tensor got = gradient_of(p);

  clear_gradient(p);
  const Tensor again = network();
  tape_.backward(ops::add(tape_, first(again), second(again)));
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(got.f32()[i], gradient_at(p, i), 1e-6);
}

TEST_F(TapeTest, AnOutputThatIsAParameter) {
  const Tensor p = parameter(scalar(1.0f));
  tape_.backward(p, scalar(5.0f));
  tape_.backward(p);
  EXPECT_EQ(gradient_at(p), 6.0f);
}

/// y and the gradients of x, a and b, with parts of the network recomputed `depth` deep.
std::vector<Tensor> run_network(int depth, int threads) {
  ThreadPool pool(threads);
  Tape tape(pool);
  const Tensor x = parameter(random_tensor({2, 50, 40}, 1)), a = parameter(random_tensor({40}, 2)),
               b = parameter(random_tensor({40}, 3));
  const auto inner = [b](Tape& t, const Tensor& v) {
    return ops::activate(t, Activation::gelu, ops::add_rows(t, ops::mul_rows(t, v, b), b));
  };
  const auto outer = [=](Tape& t, const Tensor& v) {
    const Tensor w = ops::activate(t, Activation::elu, ops::mul_rows(t, v, a));
    const Tensor u = depth > 1 ? recompute(t, w, inner) : inner(t, w);
    return ops::add(t, ops::mul_rows(t, u, b), v);
  };
  Tensor y = ops::mul_rows(tape, x, b);
  for (int i = 0; i < 2; ++i) y = depth > 0 ? recompute(tape, y, outer) : outer(tape, y);
  EXPECT_EQ(tape.recorded(), depth > 0 ? 3u : 15u);
  tape.backward(y, random_tensor(y.shape(), 4));
  EXPECT_EQ(tape.recorded(), 0u);
  return {y, gradient_of(x), gradient_of(a), gradient_of(b)};
}

TEST(Recompute, GivesTheSameBits) {
  const std::vector<Tensor> want = run_network(0, 1);
  for (const int depth : {0, 1, 2}) {
    const std::vector<Tensor> got = run_network(depth, 1 + depth);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::string what = "depth " + std::to_string(depth) + ", tensor " + std::to_string(i);
      ASSERT_TRUE(got[i].defined()) << what;
      expect_same_bits(got[i], want[i], what);
    }
  }
}

TEST_F(TapeTest, RecomputeFindsTheParametersInside) {
  const Tensor x = scalar(3.0f), p = parameter(scalar(2.0f));  // x itself has no gradient
  tape_.backward(recompute(tape_, x, [p](Tape& t, const Tensor& v) { return ops::mul(t, v, p); }));
  EXPECT_EQ(gradient_at(p), 3.0f);
}

TEST_F(TapeTest, RecomputeOfWhatDependsOnNothing) {
  const Tensor x = parameter(scalar(3.0f));
  const Tensor y = recompute(tape_, x, [](Tape& t, const Tensor& v) {
    ops::square(t, v);
    return ops::square(t, v.detached());
  });
  tape_.backward(y);
  EXPECT_FALSE(gradient_of(x).defined());
  EXPECT_EQ(tape_.recorded(), 0u);
}

TEST_F(TapeTest, RecomputeInAPauseOnlyComputes) {
  const Tape::Pause pause(tape_);
  const Tensor p = parameter(scalar(3.0f));
  const Tensor y = recompute(tape_, p, [](Tape& t, const Tensor& v) { return ops::square(t, v); });
  EXPECT_EQ(*y.f32(), 9.0f);
  EXPECT_FALSE(y.recorded());
}

TEST_F(TapeTest, RecomputeKeepsItsPrecision) {
  std::vector<Precision> seen;
  const Tensor p = parameter(scalar(3.0f));
  tape_.set_precision(Precision::bf16);
  const Tensor y = recompute(tape_, p, [&seen](Tape& t, const Tensor& v) {
    seen.push_back(t.precision());
    return ops::square(t, v);
  });
  tape_.set_precision(Precision::f32);
  tape_.backward(y);
  EXPECT_EQ(seen, (std::vector{Precision::bf16, Precision::bf16}));
  EXPECT_EQ(tape_.precision(), Precision::f32);
}

TEST_F(TapeTest, AnExceptionInRecomputeLeavesTheTapeUsable) {
  const Tensor p = parameter(scalar(3.0f));
  int runs = 0;
  const Tensor y = recompute(tape_, p, [&runs](Tape& t, const Tensor& v) {
    if (++runs == 2) throw std::runtime_error("no");
    return ops::square(t, v);
  });
  EXPECT_THROW(tape_.backward(y), std::runtime_error);
  tape_.clear();
  EXPECT_TRUE(ops::square(tape_, p).recorded());
  tape_.backward(ops::square(tape_, p));
  EXPECT_EQ(gradient_at(p), 6.0f);
}

TEST_F(TapeTest, StepsUseTheSameMemory) {
  const Tensor p = parameter(random_tensor({1000}, 1));
  const auto step = [&] {
    Tensor y = p;
    for (int i = 0; i < 5; ++i) y = ops::activate(tape_, Activation::silu, ops::add(tape_, y, p));
    tape_.backward(ops::sum(tape_, y));
    clear_gradient(p);
  };
  step();
  const std::size_t bytes = tape_.bytes();
  EXPECT_GT(bytes, 5u * 4000u);
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(tape_.bytes(), bytes);
}

TEST(BufferPool, LendsABlockAgain) {
  BufferPool blocks;
  const Tensor kept = blocks.make({100});
  EXPECT_EQ(blocks.bytes(), 448u);  // 400 bytes in whole lines of 64
  { const Tensor lent = blocks.make({101}); }
  EXPECT_EQ(blocks.bytes(), 896u);
  const Tensor again = blocks.make({99});
  EXPECT_EQ(blocks.bytes(), 896u);
}

TEST(BufferPool, TensorsMayOutliveIt) {
  std::optional<BufferPool> blocks(std::in_place);
  Tensor x = blocks->make({1000});
  blocks.reset();
  x.f32()[999] = 1.0f;
  EXPECT_EQ(x.f32()[999], 1.0f);
}

TEST(BufferPool, BlocksAreAlignedAndApart) {
  BufferPool blocks;
  std::vector<Tensor> tensors;
  for (const std::int64_t size : {0, 1, 15, 16, 17, 1000, 100000}) {
    tensors.push_back(blocks.make({size}));
    EXPECT_TRUE(tensors.back().defined());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors.back().raw()) % 64, 0u);
    for (std::size_t i = 0; i + 1 < tensors.size(); ++i) EXPECT_NE(tensors[i].raw(), tensors.back().raw());
  }
}

void follow_long_chains() {
  constexpr int kLength = 100'000;
  ThreadPool pool;
  Tape tape(pool);
  const Tensor p = parameter(scalar(1.0f));
  const auto chain = [&p](Tape& on) {
    Tensor y = p;
    for (int i = 0; i < kLength; ++i) y = ops::affine(on, y, -1.0f);
    return y;
  };
  Tensor y = chain(tape);
  tape.backward(y);
  EXPECT_EQ(gradient_at(p), 1.0f);
  y = chain(tape);
  tape.clear();  // while y holds the end of the chain
  y = Tensor();
  {
    Tape other(pool);
    y = chain(other);
  }
  y = chain(tape);
  tape.backward(ops::square(tape, p));  // the chain is passed over
  y = Tensor();
}

TEST(Tape, LongChainsNeedNoDeepStack) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{512} << 10), 0);
  pthread_t thread;
  const auto run = [](void*) -> void* {
    follow_long_chains();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, nullptr), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(TapeTest, RefusesWhatCannotWork) {
  const Tensor p = parameter(random_tensor({2, 3}, 1));
  EXPECT_EQ(message_of([&] { tape_.backward(ops::square(tape_, p)); }),
            "[backward] expected a loss [1], got [2, 3]");
  EXPECT_EQ(message_of([&] {
              tape_.backward(ops::square(tape_, p), Tensor::zeros({3, 2}));
            }),
            "[backward] expected a gradient [2, 3], got [3, 2]");
  EXPECT_EQ(message_of([&] { tape_.backward(scalar(1.0f)); }),
            "[backward] expected a tensor that depends on a parameter, got one that does not");
  const Tensor wrong = tape_.record(Tensor::zeros({1}), {p},
                                    [](const Tensor& g, InputGradients& inputs) { inputs.add(0, g); });
  EXPECT_EQ(message_of([&] { tape_.backward(wrong); }), "[backward] expected a gradient [2, 3], got [1]");
}

TEST_F(TapeTest, RefusesWhatIsNoLongerOnRecord) {
  const Tensor p = parameter(scalar(1.0f));
  const Tensor followed = ops::square(tape_, p);
  tape_.backward(followed);
  const std::string want =
      "[backward] expected tensors on record, got one whose record was followed or cleared before";
  EXPECT_EQ(message_of([&] { tape_.backward(followed); }), want);
  EXPECT_EQ(message_of([&] { tape_.backward(ops::square(tape_, followed)); }), want);
  tape_.clear();
  const Tensor cleared = ops::square(tape_, p);
  tape_.clear();
  EXPECT_EQ(message_of([&] { tape_.backward(ops::square(tape_, cleared)); }), want);
}

}  // namespace
}  // namespace tessera
