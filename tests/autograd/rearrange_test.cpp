// Operations that move elements: values against plain index arithmetic, gradients against differences, the
// same bits however they are computed, behaviour at the edges.
#include "core/autograd/rearrange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/autograd/gradient_check.h"

namespace tessera {
namespace {

using test::OperationCase;
using test::random_distinct;
using test::random_tensor;
using Values = std::vector<double>;
using Inputs = std::vector<Values>;
using Index = std::array<std::int64_t, Shape::kMaxRank>;

Index index_of(const Shape& shape, std::int64_t element) {
  Index index{};
  for (int axis = shape.rank(); axis-- > 0; element /= shape[axis]) {
    index[static_cast<std::size_t>(axis)] = element % shape[axis];
  }
  return index;
}

std::size_t element_at(const Shape& shape, const Index& index) {
  std::int64_t element = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    element = element * shape[axis] + index[static_cast<std::size_t>(axis)];
  }
  return static_cast<std::size_t>(element);
}

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i) extents.push_back(i == axis ? extent : shape[i]);
  return Shape(extents);
}

using OneInput = std::function<Tensor(Tape&, const Tensor&)>;

/// y at each index is value(x, index); x(index) reads the input.
using Reader = std::function<double(const Index&)>;
OperationCase of_one(const std::string& name, OneInput f, const Tensor& x, const Shape& shape,
                     std::function<double(const Reader& x, Index index)> value) {
  OperationCase c;
  c.name = name + " of " + x.shape().str();
  c.operation = [f = std::move(f)](Tape& tape, std::span<const Tensor> in) { return f(tape, in[0]); };
  c.inputs = {x};
  c.shape = shape;
  c.reference = [from = x.shape(), shape, value = std::move(value)](const Inputs& in) {
    const Reader read = [&](const Index& index) { return in[0][element_at(from, index)]; };
    Values y;
    for (std::int64_t i = 0; i < shape.size(); ++i) y.push_back(value(read, index_of(shape, i)));
    return y;
  };
  if (x.size() > 1000) c.check.samples = 6;
  return c;
}

/// Each at an axis in front, in the middle and at the end, small and over several blocks.
struct AxisOf {
  Shape shape;
  int axis;
};
const AxisOf kAxes[] = {{{9}, 0},        {{8, 3}, 0},       {{2, 9, 3}, 1}, {{2, 3, 8}, 2},
                        {{2, 33000}, 1}, {{300, 60, 2}, 1}, {{11000, 4}, 0}};

std::vector<OperationCase> axis_operations() {
  std::vector<OperationCase> cases;
  for (const AxisOf& a : kAxes) {
    const Tensor x = random_distinct(a.shape, 1);
    const int axis = a.axis;
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t extent = a.shape[axis];
    const auto add = [&](const std::string& name, const OneInput& f, std::int64_t length,
                         std::function<double(const Reader&, Index)> value) {
      cases.push_back(of_one(name + " at " + std::to_string(axis), f, x, with_extent(a.shape, axis, length),
                             std::move(value)));
    };
    const bool large = x.size() > 1000;  // one of each will do
    using Pair = std::pair<std::int64_t, std::int64_t>;
    std::vector<Pair> parts = {{2, extent - 3}}, pads = {{2, 3}};
    std::vector<std::pair<int, int>> pools = {{3, 2}};
    if (!large) {
      parts.insert(parts.end(), {{0, extent}, {extent - 1, 1}});
      pads.insert(pads.end(), {{0, 1}, {4, 0}, {7, 7}});
      pools.insert(pools.end(), {{1, 1}, {2, 2}, {4, 1}, {2, 3}});
    }
    for (const auto& [begin, length] : parts) {
      add(
          "slice",
          [=, b = begin, n = length](Tape& tape, const Tensor& v) { return ops::slice(tape, v, axis, b, n); },
          length,
          [=, b = begin](const Reader& read, Index i) {
            i[at] += b;
            return read(i);
          });
    }
    for (const auto& [before, after] : pads) {
      const std::int64_t b = before, length = before + extent + after;
      add(
          "pad", [=, n = after](Tape& tape, const Tensor& v) { return ops::pad(tape, v, axis, b, n); },
          length,
          [=](const Reader& read, Index i) {
            i[at] -= b;
            return i[at] < 0 || i[at] >= extent ? 0.0 : read(i);
          });
      add(
          "reflect",
          [=, n = after](Tape& tape, const Tensor& v) {
            return ops::pad(tape, v, axis, b, n, ops::Padding::reflect);
          },
          length,
          [=](const Reader& read, Index i) {
            i[at] = std::abs(i[at] - b);
            if (i[at] >= extent) i[at] = 2 * (extent - 1) - i[at];
            return read(i);
          });
    }
    for (const auto& [size, stride] : pools) {
      const std::int64_t windows = (extent - size) / stride + 1, step = stride, width = size;
      add(
          "average_pool",
          [=, n = size, s = stride](Tape& tape, const Tensor& v) {
            return ops::average_pool(tape, v, axis, n, s);
          },
          windows,
          [=](const Reader& read, Index i) {
            double sum = 0;
            i[at] *= step;
            for (std::int64_t k = 0; k < width; ++k, ++i[at]) sum += read(i);
            return sum / static_cast<double>(width);
          });
      add(
          "max_pool",
          [=, n = size, s = stride](Tape& tape, const Tensor& v) {
            return ops::max_pool(tape, v, axis, n, s);
          },
          windows,
          [=](const Reader& read, Index i) {
            double best = -10;
            i[at] *= step;
            for (std::int64_t k = 0; k < width; ++k, ++i[at]) best = std::max(best, read(i));
            return best;
          });
      // Steps that leave the order of the values.
      cases.back().check.step = 0.2 / static_cast<double>(x.size());
      cases.back().check.tolerance = large ? 0.1 : 0.01;
    }
  }
  return cases;
}

std::vector<OperationCase> permutations() {
  std::vector<OperationCase> cases;
  const auto add = [&](const Shape& shape, const std::vector<int>& axes) {
    std::vector<std::int64_t> extents;
    std::string name = "permute";
    for (const int axis : axes) {
      extents.push_back(shape[axis]);
      name += " " + std::to_string(axis);
    }
    cases.push_back(of_one(
        name, [axes](Tape& tape, const Tensor& x) { return ops::permute(tape, x, axes); },
        random_tensor(shape, 2), Shape(extents),
        [axes](const Reader& read, Index i) {
          Index from{};
          for (std::size_t k = 0; k < axes.size(); ++k) from[static_cast<std::size_t>(axes[k])] = i[k];
          return read(from);
        }));
  };
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 4, 1, 6}, Shape{3, 17, 2, 19}}) {
    std::vector<int> axes = {0, 1, 2, 3};
    do add(shape, axes);
    while (std::next_permutation(axes.begin(), axes.end()));
  }
  add({5}, {0});
  add({2, 3, 2, 3, 2}, {4, 2, 0, 3, 1});
  add({300, 257}, {1, 0});
  add({70000, 2}, {1, 0});
  add({2, 70000}, {1, 0});
  add({4, 100, 8, 33}, {0, 2, 1, 3});
  add({4, 100, 8, 33}, {0, 2, 3, 1});
  return cases;
}

std::vector<OperationCase> tables() {
  std::vector<OperationCase> cases;
  for (const auto& [rows, width, count] : {std::array{5, 3, 7}, {1000, 1, 300}, {40, 200, 900}}) {
    std::vector<std::int32_t> indices;
    for (int i = 0; i < count; ++i) indices.push_back((i * i * 7 + 1) % rows);
    OperationCase c = of_one(
        "take_rows", [indices](Tape& tape, const Tensor& x) { return ops::take_rows(tape, x, indices); },
        random_tensor({rows, width}, 3), {count, width},
        [indices](const Reader& read, Index i) {
          i[0] = indices[static_cast<std::size_t>(i[0])];
          return read(i);
        });
    c.check.samples = 60;
    cases.push_back(c);
  }
  return cases;
}

TEST(Rearrange, AlongAnAxis) {
  for (const OperationCase& c : axis_operations()) expect_operation(c);
}

TEST(Rearrange, Permute) {
  for (const OperationCase& c : permutations()) expect_operation(c);
}

TEST(Rearrange, TakeRows) {
  for (const OperationCase& c : tables()) expect_operation(c);
}

TEST(Rearrange, Reshape) {
  expect_operation(of_one(
      "reshape",
      [](Tape& tape, const Tensor& x) {
        return ops::reshape(tape, x, {4, 3});
      },
      random_tensor({2, 6}, 4), {4, 3},
      [](const Reader& read, Index i) {
        return read({(3 * i[0] + i[1]) / 6, (3 * i[0] + i[1]) % 6});
      }));
}

TEST(Rearrange, Concat) {
  for (const AxisOf& a : {AxisOf{{4}, 0}, {{2, 3}, 0}, {{2, 3, 2}, 1}, {{2, 3, 4}, 2}, {{2, 30000}, 1}}) {
    OperationCase c;
    c.name = "concat at " + std::to_string(a.axis) + " of " + a.shape.str();
    const std::int64_t lengths[] = {a.shape[a.axis], 1, 3};
    std::int64_t extent = 0;
    for (const std::int64_t length : lengths) {
      c.inputs.push_back(random_tensor(with_extent(a.shape, a.axis, length), 5 + c.inputs.size()));
      extent += length;
    }
    c.shape = with_extent(a.shape, a.axis, extent);
    c.operation = [axis = a.axis](Tape& tape, std::span<const Tensor> in) {
      return ops::concat(tape, in, axis);
    };
    c.reference = [&](const Inputs& in) {
      Values y;
      for (std::int64_t i = 0; i < c.shape.size(); ++i) {
        Index index = index_of(c.shape, i);
        std::int64_t& place = index[static_cast<std::size_t>(a.axis)];
        std::size_t part = 0;
        while (place >= lengths[part]) place -= lengths[part++];
        y.push_back(in[part][element_at(c.inputs[part].shape(), index)]);
      }
      return y;
    };
    c.check.samples = 10;
    expect_operation(c);
  }
}

TEST(Rearrange, TheFirstOfEqualsHasTheGradient) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = parameter(Tensor::zeros({4}));
  tape.backward(ops::max_pool(tape, x, 0, 3, 1), random_tensor({2}, 1, 0.5f, 1.0f));
  EXPECT_GT(gradient_of(x).f32()[0], 0.0f);
  EXPECT_GT(gradient_of(x).f32()[1], 0.0f);
  EXPECT_EQ(gradient_of(x).f32()[2], 0.0f);
  EXPECT_EQ(gradient_of(x).f32()[3], 0.0f);
}

TEST(Rearrange, MaxPoolKeepsNaN) {
  ThreadPool pool;
  Tape tape(pool);
  for (int place = 0; place < 3; ++place) {
    Tensor x = random_tensor({3}, 1);
    x.f32()[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(*ops::max_pool(tape, x, 0, 3, 1).f32())) << place;
  }
}

TEST(Rearrange, ReshapeSharesMemory) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_EQ(ops::reshape(tape, x, {6}).raw(), x.raw());
}

TEST(Rearrange, EmptyTensors) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = Tensor::zeros({2, 0, 3});
  EXPECT_EQ(ops::slice(tape, x, 2, 1, 1).shape(), (Shape{2, 0, 1}));
  EXPECT_EQ(ops::pad(tape, x, 1, 1, 1).f32()[11], 0.0f);
  EXPECT_EQ(ops::permute(tape, x, std::array{1, 2, 0}).shape(), (Shape{0, 3, 2}));
  EXPECT_EQ(ops::take_rows(tape, Tensor::zeros({4, 2}), {}).shape(), (Shape{0, 2}));
  EXPECT_EQ(ops::concat(tape, std::array{x, x}, 1).shape(), x.shape());
}

TEST(Rearrange, RefusesWhatDoesNotFit) {
  ThreadPool pool;
  Tape tape(pool);
  const Tensor x = Tensor::zeros({2, 3, 4}), table = Tensor::zeros({4, 2});
  EXPECT_THROW(ops::reshape(tape, x, {5, 5}), UsageError);
  EXPECT_THROW(ops::slice(tape, x, 3, 0, 1), UsageError);
  EXPECT_THROW(ops::slice(tape, x, -1, 0, 1), UsageError);
  EXPECT_THROW(ops::slice(tape, x, 1, 2, 2), UsageError);
  EXPECT_THROW(ops::slice(tape, x, 1, -1, 2), UsageError);
  EXPECT_THROW(ops::slice(tape, x, 1, 1, std::numeric_limits<std::int64_t>::max()), UsageError);
  EXPECT_THROW(ops::slice(tape, x, 1, 1, -1), UsageError);
  EXPECT_THROW(ops::concat(tape, {}, 0), UsageError);
  EXPECT_THROW(ops::concat(tape, std::array{x, Tensor::zeros({2, 2, 4})}, 0), UsageError);
  EXPECT_THROW(ops::concat(tape, std::array{x, table}, 0), UsageError);
  EXPECT_THROW(ops::pad(tape, x, 1, -1, 0), UsageError);
  EXPECT_THROW(ops::pad(tape, x, 1, 3, 0, ops::Padding::reflect), UsageError);
  EXPECT_THROW(ops::pad(tape, x, 1, 0, 3, ops::Padding::reflect), UsageError);
  EXPECT_THROW(ops::permute(tape, x, std::array{0, 1}), UsageError);
  EXPECT_THROW(ops::permute(tape, x, std::array{0, 1, 1}), UsageError);
  EXPECT_THROW(ops::permute(tape, x, std::array{0, 1, 3}), UsageError);
  EXPECT_THROW(ops::take_rows(tape, x, std::array{0}), UsageError);
  EXPECT_THROW(ops::take_rows(tape, table, std::array{4}), UsageError);
  EXPECT_THROW(ops::take_rows(tape, table, std::array{-1}), UsageError);
  EXPECT_THROW(ops::average_pool(tape, x, 1, 4, 1), UsageError);
  EXPECT_THROW(ops::average_pool(tape, x, 1, 0, 1), UsageError);
  EXPECT_THROW(ops::max_pool(tape, x, 1, 1, 0), UsageError);
}

}  // namespace
}  // namespace tessera
