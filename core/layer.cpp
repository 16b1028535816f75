#include "core/layer.h"

#include <algorithm>
#include <numeric>

namespace tessera {

Sequences allocate_sequences(Workspace& workspace, Workspace::Side side, std::span<const int> lengths,
                             std::span<const bool> ends, int channels) {
  const std::span<int> kept = workspace.array<int>(side, lengths.size());
  std::copy(lengths.begin(), lengths.end(), kept.begin());
  const int total = std::accumulate(lengths.begin(), lengths.end(), 0);
  return {workspace.tensor(side, {total, channels}), kept, ends};
}

std::size_t sequences_bytes(int streams, int rows, int channels) {
  const std::size_t count = static_cast<std::size_t>(streams);
  return Workspace::padded(count * sizeof(int)) +
         Workspace::padded(count * static_cast<std::size_t>(rows) * static_cast<std::size_t>(channels) *
                           sizeof(float));
}

}  // namespace tessera
