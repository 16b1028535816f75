#include "train/quantizers/known_gradient.h"

#include <utility>

#include "core/autograd/elementwise.h"
#include "core/error.h"

namespace tessera::train {

Tensor straight_through(Tape& tape, const Tensor& values, const Tensor& input) {
  if (values.shape() != input.shape())
    fail("straight_through", "values " + input.shape().str(), values.shape().str());
  return tape.record(values.detached(), {input},
                     [](const Tensor& g, InputGradients& inputs) { inputs.add(0, g); });
}

Tensor with_gradients(Tape& tape, float value, std::span<const KnownGradient> gradients) {
  Tensor result = tape.make({1});
  *result.f32() = value;
  std::vector<Tensor> inputs;
  std::vector<std::pair<Tensor, float>> known;
  for (const KnownGradient& gradient : gradients) {
    inputs.push_back(gradient.input);
    known.emplace_back(gradient.gradient, gradient.factor);
  }
  return tape.record(result, inputs,
                     [&tape, known = std::move(known)](const Tensor& g, InputGradients& flow) {
                       for (std::size_t i = 0; i < known.size(); ++i) {
                         if (!flow.wants(i)) continue;
                         flow.add(i, ops::affine(tape, known[i].first, *g.f32() * known[i].second));
                       }
                     });
}

}  // namespace tessera::train
