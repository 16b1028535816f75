#include "core/autograd/tape.h"

#include <cstring>
#include <string>
#include <utility>

#include "core/autograd/elementwise.h"
#include "core/error.h"

namespace tessera {

struct TapeNode {
  Backward backward;  // empty: a parameter
  std::vector<std::shared_ptr<TapeNode>> inputs;
  Shape shape;
  Tensor gradient;
  bool forgotten = false;  // no longer on record

  /// Lets go of what the node holds. Nodes hold their inputs: if each went only with the last tensor computed
  /// from it, a long chain would be undone by as deep a recursion.
  void forget() {
    forgotten = true;
    backward = nullptr;
    inputs.clear();
    gradient = {};
  }
};

void InputGradients::add(std::size_t i, const Tensor& gradient) {
  if (nodes_[i]) tape_.accumulate(*nodes_[i], gradient);
}

Tensor Tape::zeros(const Shape& shape) {
  Tensor tensor = make(shape);
  std::memset(tensor.raw(), 0, tensor.bytes());
  return tensor;
}

Tensor Tape::record(Tensor y, std::initializer_list<Tensor> inputs, Backward backward) {
  return record(std::move(y), std::span(inputs.begin(), inputs.size()), std::move(backward));
}

Tensor Tape::record(Tensor y, std::span<const Tensor> inputs, Backward backward) {
  if (paused_) return y;
  auto node = std::make_shared<TapeNode>();
  bool flows = false;
  for (const Tensor& input : inputs) {
    node->inputs.push_back(input.node());
    flows = flows || input.recorded();
  }
  if (!flows) return y;
  node->backward = std::move(backward);
  node->shape = y.shape();
  y.set_node(node);
  nodes_.push_back(std::move(node));
  return y;
}

void Tape::accumulate(TapeNode& node, const Tensor& gradient) {
  if (gradient.shape() != node.shape)
    fail("backward", "a gradient " + node.shape.str(), gradient.shape().str());
  if (node.forgotten)
    fail("backward", "tensors on record", "one whose record was followed or cleared before");
  if (!node.gradient.defined()) {
    node.gradient = gradient.detached();
  } else if (node.gradient.sole_owner()) {
    ops::add_to(*this, gradient, node.gradient);
  } else {  // another input's gradient, too: leave that as it is
    node.gradient = ops::add(*this, node.gradient, gradient.detached());
  }
}

void Tape::backward(const Tensor& loss) {
  if (loss.shape() != Shape{1}) fail("backward", "a loss [1]", loss.shape().str());
  Tensor one = make({1});
  *one.f32() = 1.0f;
  backward(loss, one);
}

void Tape::backward(const Tensor& output, const Tensor& gradient, std::size_t since) {
  if (!output.recorded()) fail("backward", "a tensor that depends on a parameter", "one that does not");
  accumulate(*output.node(), gradient);
  const Pause pause(*this);
  while (nodes_.size() > since) {
    const std::shared_ptr<TapeNode> node = std::move(nodes_.back());
    nodes_.pop_back();
    if (node->gradient.defined()) {
      const Tensor upstream = std::exchange(node->gradient, {});
      InputGradients inputs(*this, node->inputs);
      node->backward(upstream, inputs);
    }
    node->forget();  // what it held is free for what comes
  }
}

void Tape::forget(std::size_t since) {
  while (nodes_.size() > since) {
    nodes_.back()->forget();
    nodes_.pop_back();
  }
}

Tensor parameter(const Tensor& values) {
  auto node = std::make_shared<TapeNode>();
  node->shape = values.shape();
  Tensor result = values.detached();
  result.set_node(std::move(node));
  return result;
}

Tensor gradient_of(const Tensor& parameter) {
  return parameter.recorded() ? parameter.node()->gradient : Tensor();
}

void clear_gradient(const Tensor& parameter) {
  if (parameter.recorded()) parameter.node()->gradient = {};
}

Tensor recompute(Tape& tape, const Tensor& x, std::function<Tensor(Tape&, const Tensor&)> body) {
  if (tape.paused_) return body(tape, x);
  Tensor y;
  {
    const Tape::Pause pause(tape);
    y = body(tape, x.detached());
  }
  /// Records within backward(), which pauses the tape, in the precision of the first run.
  struct Recording {
    Recording(Tape& which, Precision first) : tape(which), now(std::exchange(which.precision_, first)) {
      tape.paused_ = false;
    }
    ~Recording() {
      tape.forget(since);
      tape.paused_ = true;
      tape.precision_ = now;
    }
    Tape& tape;
    Precision now;
    std::size_t since = tape.recorded();
  };
  const Tensor root =
      x.recorded() ? x : parameter(x);  // the parameters inside need their gradients all the same
  return tape.record(y.detached(), {root},
                     [&tape, x = x.detached(), body = std::move(body), precision = tape.precision_](
                         const Tensor& g, InputGradients& inputs) {
                       const Tensor again = parameter(x);
                       {
                         const Recording recording(tape, precision);
                         const Tensor result = body(tape, again);
                         if (result.recorded()) tape.backward(result, g, recording.since);
                       }
                       if (gradient_of(again).defined()) inputs.add(0, gradient_of(again));
                     });
}

}  // namespace tessera
