// Running a graph. Loading it is in tflite_load.cpp.
#include "metrics/tflite_graph.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace tessera::metrics {

std::vector<std::string> TfliteGraph::inputs() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : inputs_) names.push_back(name);
  return names;
}

double TfliteGraph::run(const std::map<std::string, float, std::less<>>& inputs) const {
  std::vector<float> memory = constants_;
  for (const auto& [name, tensor] : inputs_) {
    const auto value = inputs.find(name);
    if (value == inputs.end()) fail("tflite_graph", "a value for " + name, "none");
    memory[tensors_[tensor].begin] = value->second;
  }
  for (const Step& step : steps_) perform(step, memory.data());
  return memory[tensors_[output_].begin];
}

// Two inputs, broadcast to the shape of the output: an axis of extent 1 is repeated.
void TfliteGraph::combine(const Step& step, float* memory) const {
  const Tensor& out = tensors_[step.to[0]];
  struct Walk {
    const float* data;
    std::array<std::size_t, kMaxAxes> strides;
  };
  const auto walk = [&](const Tensor& tensor) {
    Walk w{memory + tensor.begin, {}};
    std::size_t stride = 1;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      w.strides[kMaxAxes - tensor.shape.size() + axis] = tensor.shape[axis] == 1 ? 0 : stride;
      stride *= tensor.shape[axis];
    }
    return w;
  };
  const Walk a = walk(tensors_[step.from[0]]), b = walk(tensors_[step.from[1]]);
  std::array<std::size_t, kMaxAxes> extents;
  extents.fill(1);
  std::copy(out.shape.begin(), out.shape.end(),
            extents.end() - static_cast<std::ptrdiff_t>(out.shape.size()));
  float* y = memory + out.begin;
  for (std::size_t i = 0; i < extents[0]; ++i) {
    for (std::size_t j = 0; j < extents[1]; ++j) {
      const float* u = a.data + i * a.strides[0] + j * a.strides[1];
      const float* v = b.data + i * b.strides[0] + j * b.strides[1];
      for (std::size_t k = 0; k < extents[2]; ++k, u += a.strides[2], v += b.strides[2]) {
        switch (step.kind) {
          case Kind::add:
            *y++ = *u + *v;
            break;
          case Kind::subtract:
            *y++ = *u - *v;
            break;
          case Kind::multiply:
            *y++ = *u * *v;
            break;
          case Kind::minimum:
            *y++ = std::min(*u, *v);
            break;
          default:
            *y++ = *u == *v ? 1.0f : 0.0f;
        }
      }
    }
  }
}

void TfliteGraph::perform(const Step& step, float* memory) const {
  const Tensor& first = tensors_[step.from[0]];
  const Tensor& out = tensors_[step.to[0]];
  const float* x = memory + first.begin;
  float* y = memory + out.begin;
  switch (step.kind) {
    case Kind::copy:
      std::copy_n(x, out.size, y);
      return;
    case Kind::fill:
      std::fill_n(y, out.size, *x);
      return;
    case Kind::relu:
      for (std::size_t i = 0; i < out.size; ++i) y[i] = std::max(x[i], 0.0f);
      return;
    case Kind::absolute:
      for (std::size_t i = 0; i < out.size; ++i) y[i] = std::abs(x[i]);
      return;
    case Kind::concatenate:
      for (const std::size_t from : step.from) {
        y = std::copy_n(memory + tensors_[from].begin, tensors_[from].size, y);
      }
      return;
    case Kind::split:
      for (const std::size_t to : step.to) {
        std::copy_n(x, tensors_[to].size, memory + tensors_[to].begin);
        x += tensors_[to].size;
      }
      return;
    case Kind::product: {
      const Tensor& right = tensors_[step.from[1]];
      const std::size_t inner = first.shape.back(), columns = out.shape.back();
      const std::size_t next_inner = step.transposed ? 1 : columns, next_column = step.transposed ? inner : 1;
      const float* w = memory + right.begin;
      for (std::size_t i = 0; i < out.size; ++i) {
        const float *row = x + i / columns * inner, *column = w + i % columns * next_column;
        double sum = 0;
        for (std::size_t k = 0; k < inner; ++k) {
          sum += static_cast<double>(row[k]) * column[k * next_inner];
        }
        y[i] = static_cast<float>(sum);
      }
      return;
    }
    default:
      combine(step, memory);
  }
}

}  // namespace tessera::metrics
