#include "core/linear.h"

namespace tessera {

void linear(const LinearArgs& args, Workspace::Side side, StepContext& context) {
  Workspace& workspace = context.workspace;
  const Workspace::Mark mark = workspace.mark();
  const PackedMatrix& weights = *args.weights;
  const auto rows = workspace.array<const float*>(side, static_cast<std::size_t>(args.rows));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = args.x + i * static_cast<std::size_t>(weights.k());
  gemm({.rows = rows,
        .weights = &weights,
        .start = args.start,
        .bias = args.bias,
        .out = args.out,
        .out_stride = weights.n()},
       context.pool);
  workspace.release(side, mark);
}

std::size_t linear_workspace_bytes(int rows) {
  return Workspace::padded(static_cast<std::size_t>(rows) * sizeof(float*));
}

}  // namespace tessera
