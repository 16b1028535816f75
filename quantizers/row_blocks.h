// Loops over rows shared out over threads, where the body runs layers or quantizers: each thread has a
// workspace of its own and does its products alone. Rows do not depend on one another, so neither the blocks
// nor the threads change a bit.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "core/layer.h"

namespace tessera {

/// body(i, context) for each i in [0, count), with a workspace of `workspace_bytes` that is empty at the
/// start. The body must not throw, unless the workspace is too small.
template <class Body>
void for_each_with_workspace(ThreadPool& pool, int count, std::size_t workspace_bytes, const Body& body) {
  const int workers = std::min(pool.threads(), count);
  std::vector<Workspace> workspaces;
  workspaces.reserve(static_cast<std::size_t>(std::max(workers, 0)));
  for (int i = 0; i < workers; ++i) workspaces.emplace_back(workspace_bytes);
  std::atomic<int> next{0};
  pool.parallel_for(workers, [&](int worker) {
    ThreadPool alone(1);
    StepContext context{workspaces[static_cast<std::size_t>(worker)], alone};
    for (int i = next++; i < count; i = next++) {
      context.workspace.clear();
      body(i, context);
    }
  });
}

}  // namespace tessera
