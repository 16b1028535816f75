// Reverse-mode differentiation (Linnainmaa 1970) on the one Tensor. Ops compute eagerly and, where a gradient
// will flow, leave a node on the tape; backward() walks the nodes in reverse order. The gradient of an op is
// written in terms of ops, beside the op. First order only: gradients are not recorded themselves.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/autograd/buffer_pool.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace tessera {

class Tape;

/// What products multiply. Sums are f32 in both, and so are all other operations.
enum class Precision : std::uint8_t {
  f32,
  bf16,  ///< operands rounded to bf16; where the CPU has no such instructions, as f32 (bf16_products())
};

/// Takes the gradients of an op's inputs during backward().
class InputGradients {
 public:
  /// Whether a gradient flows to input `i`: if not, none need be computed.
  bool wants(std::size_t i) const { return nodes_[i] != nullptr; }
  /// Adds to the gradient of input `i`; does nothing unless it wants(i). The shape is the input's.
  void add(std::size_t i, const Tensor& gradient);

 private:
  friend class Tape;
  InputGradients(Tape& tape, const std::vector<std::shared_ptr<TapeNode>>& nodes)
      : tape_(tape), nodes_(nodes) {}
  Tape& tape_;
  const std::vector<std::shared_ptr<TapeNode>>& nodes_;
};

/// Given dL/dy, adds dL/dx of each input. It captures values, not recorded tensors (Tensor::detached).
using Backward = std::function<void(const Tensor& gradient, InputGradients& inputs)>;

/// What ops share: threads, memory, precision, and the record of what was done. Not for several threads at
/// once.
class Tape {
 public:
  explicit Tape(ThreadPool& pool, Precision precision = Precision::f32)
      : pool_(pool), precision_(precision) {}
  ~Tape() { clear(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  ThreadPool& pool() { return pool_; }
  Precision precision() const { return precision_; }
  /// What products multiply from here on (a loss may need more than a network).
  void set_precision(Precision precision) { precision_ = precision; }

  /// f32 storage that was used before, not cleared: for outputs of ops.
  Tensor make(const Shape& shape) { return buffers_.make(shape); }
  /// The same, cleared.
  Tensor zeros(const Shape& shape);
  /// Bytes of such storage taken from the system: flat from step to step if their sizes are.
  std::size_t bytes() const { return buffers_.bytes(); }

  /// For an op: `y` is the output computed from `inputs`. Returns y, linked to the tape if a gradient flows
  /// to one of the inputs and the tape is not paused.
  Tensor record(Tensor y, std::initializer_list<Tensor> inputs, Backward backward);
  Tensor record(Tensor y, std::span<const Tensor> inputs, Backward backward);

  /// Products of the tape have this precision while one of these lives.
  class InPrecision {
   public:
    InPrecision(Tape& tape, Precision precision) : tape_(tape), before_(tape.precision_) {
      tape_.precision_ = precision;
    }
    ~InPrecision() { tape_.precision_ = before_; }
    InPrecision(const InPrecision&) = delete;
    InPrecision& operator=(const InPrecision&) = delete;

   private:
    Tape& tape_;
    Precision before_;
  };

  /// Nothing is recorded while one of these lives.
  class Pause {
   public:
    explicit Pause(Tape& tape) : tape_(tape), before_(tape.paused_) { tape_.paused_ = true; }
    ~Pause() { tape_.paused_ = before_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Tape& tape_;
    bool before_;
  };

  /// Adds d `loss` / d p to the gradient of every parameter p that it depends on, and forgets what was
  /// recorded. Throws UsageError unless `loss` is [1].
  void backward(const Tensor& loss);
  /// The same for an output of any shape whose `gradient` is known. Only what was recorded after `since` is
  /// walked and forgotten: several losses can be followed to parameter(x) first, then x itself with the sum
  /// of what they left there.
  void backward(const Tensor& output, const Tensor& gradient, std::size_t since = 0);
  /// How many operations are on record: for `since`.
  std::size_t recorded() const { return nodes_.size(); }
  /// Forgets what was recorded. What was computed so far keeps its values, but no gradient can flow through
  /// it any more: backward() throws UsageError where it meets such a tensor.
  void clear() { forget(0); }

 private:
  friend class InputGradients;
  friend Tensor recompute(Tape&, const Tensor&, std::function<Tensor(Tape&, const Tensor&)>);
  void accumulate(TapeNode& node, const Tensor& gradient);
  void forget(std::size_t since);

  ThreadPool& pool_;
  Precision precision_;
  BufferPool buffers_;
  std::vector<std::shared_ptr<TapeNode>> nodes_;  // in the order of recording
  bool paused_ = false;
};

/// The same elements as a parameter: a tensor to which gradients flow and where they stop.
Tensor parameter(const Tensor& values);
/// The gradient that backward() left with a parameter; undefined if none flowed to it. Its memory may be
/// shared with other gradients: to be read only.
Tensor gradient_of(const Tensor& parameter);
/// Forgets it.
void clear_gradient(const Tensor& parameter);

/// Runs `body` without keeping what is inside it, and runs it again during backward(): memory for time. The
/// same bits either way, if body depends on nothing but x and parameters.
Tensor recompute(Tape& tape, const Tensor& x, std::function<Tensor(Tape&, const Tensor&)> body);

}  // namespace tessera
