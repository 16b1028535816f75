// A layer of a streaming network. The weights are const and shared; the state of a stream is a flat block of
// bytes that the layer reads and writes at the place it is given. One step serves a batch of streams of any
// lengths. Contracts 1 to 4 of the README hold for every layer: tests/core/contracts.h checks them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "core/thread_pool.h"
#include "core/workspace.h"

namespace tessera {

/// Rows of several streams, one stream after the other: stream i owns lengths[i] consecutive rows.
struct Sequences {
  Tensor rows;                   ///< [sum of lengths, C], f32
  std::span<const int> lengths;  ///< one per stream; 0 is allowed
  std::span<const bool> ends;    ///< stream i ends with these rows: layers that pad at the end do it now

  int streams() const { return static_cast<int>(lengths.size()); }
  int channels() const { return static_cast<int>(rows.dim(1)); }
  int total() const { return static_cast<int>(rows.dim(0)); }
};

/// The state blocks of the streams of a batch, at the offset of one layer.
class States {
 public:
  States(std::span<std::byte* const> blocks, std::size_t offset = 0) : blocks_(blocks), offset_(offset) {}
  template <class T = std::byte>
  T* of(int stream) const {
    return reinterpret_cast<T*>(blocks_[static_cast<std::size_t>(stream)] + offset_);
  }
  States at(std::size_t offset) const { return {blocks_, offset_ + offset}; }

 private:
  std::span<std::byte* const> blocks_;
  std::size_t offset_;
};

/// Output rows per input row: up / down.
struct RowRatio {
  std::int64_t up = 1, down = 1;
};

/// What a step may use besides weights and state.
struct StepContext {
  Workspace& workspace;
  ThreadPool& pool;
};

/// Room in the workspace, on `side`, for rows of `channels` floats and for a copy of `lengths`, which say how
/// many rows each stream has. `ends` is kept as it is.
Sequences allocate_sequences(Workspace& workspace, Workspace::Side side, std::span<const int> lengths,
                             std::span<const bool> ends, int channels);
/// What allocate_sequences takes at most for `streams` streams of `rows` rows each.
std::size_t sequences_bytes(int streams, int rows, int channels);

class Layer {
 public:
  virtual ~Layer() = default;

  virtual int in_channels() const = 0;
  virtual int out_channels() const = 0;
  /// Bytes of one stream's state, a multiple of 64 (Workspace::padded). States are position-independent: no
  /// pointers.
  virtual std::size_t state_bytes() const { return 0; }
  /// Writes the state of a stream that has seen nothing. Every byte is written, so that equal states compare
  /// equal.
  virtual void init_state(std::byte* /*state*/) const {}
  /// The most rows that one step of one stream can give for `rows` rows in, whatever its state.
  virtual int max_rows(int rows) const { return rows; }
  /// Rows out per row in, in the long run.
  virtual RowRatio ratio() const { return {}; }
  /// Rows at the start of a stream that wait for a later one before they give output: with reflect padding,
  /// the first holdback() rows give nothing, the next gives what all of them give.
  virtual int holdback() const { return 0; }
  /// Upper bound of what a step allocates (its output included) for `streams` streams of at most `rows` rows
  /// each.
  virtual std::size_t workspace_bytes(int streams, int rows) const = 0;
  /// Consumes x, gives what can be given. The output lies in the workspace on the side opposite to x (or is x
  /// itself, changed in place); scratch goes on x's side, above x, and is released before returning. Rows and
  /// lengths of the output lie together, so that x can be released. After a step with ends[i], stream i needs
  /// init_state.
  virtual Sequences step(Sequences x, States states, StepContext& context) const = 0;
};

}  // namespace tessera
