#include "train/losses/distillation.h"

#include <string>
#include <vector>

#include "core/autograd/conv.h"
#include "core/autograd/rearrange.h"
#include "core/error.h"
#include "core/norm.h"
#include "train/losses/terms.h"

namespace tessera::train {
namespace {

constexpr const char* kOp = "distillation_loss";
// Added to squared norms of vectors whose entries are of order 1: the gradient of a zero vector stays small.
constexpr float kEps = 1e-8f;

// [B, T, D] -> [B, T times, D]: every frame `times` times in a row.
Tensor repeat_frames(Tape& tape, const Tensor& x, int times) {
  const std::int64_t items = x.dim(0), frames = x.dim(1), width = x.dim(2);
  const Tensor wide = ops::reshape(tape, x, {items, frames, 1, width});
  const std::vector<Tensor> copies(static_cast<std::size_t>(times), wide);
  return ops::reshape(tape, ops::concat(tape, copies, 2), {items, frames * times, width});
}

}  // namespace

Tensor distillation_loss(Tape& tape, const Tensor& z, const Tensor& weight, const Tensor& bias,
                         const Tensor& teacher, const Tensor& mask, const DistillationOptions& options) {
  if (options.pool < 1 || options.repeat < 1 || (options.pool > 1 && options.repeat > 1)) {
    fail(kOp, "pool and repeat of at least 1, one of them 1",
         std::to_string(options.pool) + " and " + std::to_string(options.repeat));
  }
  ops::expect_f32(kOp, "z", z);
  ops::expect_f32(kOp, "weight", weight);
  if (z.shape().rank() != 3 || z.size() < 1) fail(kOp, "z [B, T, D]", z.shape().str());
  if (weight.shape().rank() != 2) fail(kOp, "weight [D, E]", weight.shape().str());
  const std::int64_t items = z.dim(0), frames = z.dim(1) / options.pool * options.repeat,
                     width = weight.dim(1);
  ops::expect_shape(kOp, "weight", weight, {z.dim(2), width});
  ops::expect_shape(kOp, "teacher", teacher, {items, frames, width});
  if (mask.defined()) ops::expect_shape(kOp, "mask", mask, {items, frames});
  const std::int64_t rows = items * frames;
  const float count =
      mask.defined() ? fixed_sum(mask.f32(), static_cast<std::size_t>(rows)) : static_cast<float>(rows);
  if (!(count > 0)) return tape.zeros({1});

  // Pooling and repeating commute with the projection: project whichever is shorter.
  const Tensor pooled =
      options.pool > 1 ? ops::average_pool(tape, z, 1, options.pool, options.pool) : z;  // [B, T/pool, D]
  Tensor student = ops::matmul(tape, pooled, weight, bias);                              // [B, T/pool, E]
  if (options.repeat > 1) student = repeat_frames(tape, student, options.repeat);        // [B, T', E]
  const Tensor cosines = ops::sum_last(tape, ops::mul(tape, ops::l2_normalize(tape, student, kEps),
                                                      ops::l2_normalize(tape, teacher.detached(), kEps)));
  const Tensor counted = mask.defined() ? ops::mul(tape, cosines, mask.detached()) : cosines;  // [B, T']
  return ops::affine(tape, ops::sum(tape, counted), -1.0f / count, 1.0f);
}

}  // namespace tessera::train
