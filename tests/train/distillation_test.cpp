#include "train/losses/distillation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"
#include "tests/train/loss_signals.h"

namespace tessera::test {
namespace {

using train::distillation_loss;
using train::DistillationOptions;

// values(b, t, c)
template <class Function>
Tensor filled(const Shape& shape, const Function& values) {
  Tensor x = Tensor::zeros(shape);
  float* at = x.f32();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t t = 0; t < shape[1]; ++t) {
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        *at++ = static_cast<float>(
            values(static_cast<double>(b), static_cast<double>(t), static_cast<double>(c)));
      }
    }
  }
  return x;
}

Tensor student() {
  return filled({2, 7, 3}, [](double b, double t, double d) { return std::sin(1 + b + 2 * t + 3 * d); });
}
Tensor projection() {
  return filled({1, 3, 4}, [](double, double d, double e) { return std::cos(d + 2 * e); }).reshaped({3, 4});
}
Tensor bias() {
  Tensor b = Tensor::zeros({4});
  b.f32()[0] = 0.1f;
  b.f32()[1] = -0.2f;
  b.f32()[2] = 0.3f;
  return b;
}
Tensor teacher(std::int64_t frames) {
  return filled({2, frames, 4}, [](double b, double t, double e) { return std::sin(0.5 + b - t + 2 * e); });
}
Tensor mask() {
  Tensor m = Tensor::zeros({2, 7});
  for (int i = 0; i < 14; ++i) m.f32()[i] = i == 0 || i >= 12 ? 0.0f : 1.0f;
  return m;
}
DistillationOptions rates(int pool, int repeat) {
  DistillationOptions o;
  o.pool = pool;
  o.repeat = repeat;
  return o;
}

// Reference values: PyTorch in double precision.
TEST(Distillation, MatchesReferenceValues) {
  OneTape t;
  const auto loss = [&](const Tensor& target, const Tensor& counts, const DistillationOptions& o) {
    return *distillation_loss(t.tape, student(), projection(), bias(), target, counts, o).f32();
  };
  EXPECT_NEAR(loss(teacher(7), {}, {}), 0.9890250288266244, 1e-6);
  EXPECT_NEAR(loss(teacher(7), mask(), {}), 1.076088584379147, 1e-6);
  EXPECT_NEAR(loss(teacher(2), {}, rates(3, 1)), 1.595818741673512, 1e-6);
  EXPECT_NEAR(loss(teacher(14), {}, rates(1, 2)), 0.9127507217359677, 1e-6);
}

TEST(Distillation, GradientsAreExact) {
  struct Case {
    std::int64_t frames;
    Tensor mask;
    DistillationOptions options;
  };
  const Case cases[] = {{7, mask(), {}}, {2, {}, rates(3, 1)}, {14, {}, rates(1, 2)}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.frames);
    expect_gradients(
        [&](Tape& tape, std::span<const Tensor> in) {
          return distillation_loss(tape, in[0], in[1], in[2], teacher(c.frames), c.mask, c.options);
        },
        {student(), projection(), bias()});
  }
}

TEST(Distillation, MaskedFramesHaveNoSay) {
  OneTape t;
  Tensor other = teacher(7);
  other.f32()[0] = 50;
  EXPECT_EQ(*distillation_loss(t.tape, student(), projection(), bias(), other, mask()).f32(),
            *distillation_loss(t.tape, student(), projection(), bias(), teacher(7), mask()).f32());
  const Tensor none =
      distillation_loss(t.tape, parameter(student()), projection(), bias(), other, Tensor::zeros({2, 7}));
  EXPECT_EQ(none.shape(), Shape{1});
  EXPECT_EQ(*none.f32(), 0.0f);
}

TEST(Distillation, EqualDirectionsGiveZeroAndZeroVectorsStayFinite) {
  OneTape t;
  Tensor same = Tensor::zeros({3, 3});
  for (int i = 0; i < 3; ++i) same.f32()[4 * i] = 2.5f;
  EXPECT_NEAR(*distillation_loss(t.tape, student(), same, {}, student()).f32(), 0, 1e-6);
  const Tensor z = parameter(Tensor::zeros({2, 7, 3}));
  const Tensor loss = distillation_loss(t.tape, z, projection(), {}, teacher(7));
  EXPECT_EQ(*loss.f32(), 1.0f);
  t.tape.backward(loss);
  for (std::int64_t i = 0; i < z.size(); ++i) ASSERT_LT(std::abs(gradient_of(z).f32()[i]), 1e4f);
}

TEST(Distillation, WrongUseThrows) {
  OneTape t;
  const auto run = [&](const Tensor& z, const Tensor& w, const Tensor& target, const Tensor& counts,
                       const DistillationOptions& o) {
    distillation_loss(t.tape, z, w, bias(), target, counts, o);
  };
  EXPECT_NO_THROW(run(student(), projection(), teacher(7), {}, {}));
  EXPECT_THROW(run(student(), projection(), teacher(6), {}, {}), UsageError);
  EXPECT_THROW(run(student(), projection(), teacher(7), Tensor::zeros({2, 6}), {}), UsageError);
  EXPECT_THROW(run(student(), projection(), teacher(3), {}, rates(3, 1)), UsageError);
  EXPECT_THROW(run(student(), projection(), teacher(7), {}, rates(2, 2)), UsageError);
  EXPECT_THROW(run(student(), projection(), teacher(7), {}, rates(0, 1)), UsageError);
  EXPECT_THROW(run(student(), Tensor::zeros({4, 4}), teacher(7), {}, {}), UsageError);
  EXPECT_THROW(run(Tensor::zeros({2, 7}), projection(), teacher(7), {}, {}), UsageError);
  EXPECT_THROW(run(student(), Tensor(), teacher(7), {}, {}), UsageError);
  EXPECT_THROW(run(Tensor(), projection(), teacher(7), {}, {}), UsageError);
}

}  // namespace
}  // namespace tessera::test
