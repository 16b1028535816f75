// The streaming half of every causal convolution: keeps the rows that later outputs still need, pads the
// start and the end of a stream, and lays out one contiguous run of rows [kept tail; new rows] over which a
// valid convolution runs. Padding follows the published codecs: `left` = extent - stride rows before the
// start; at the end only the rows that complete the last window. Reflect padding as in EnCodec's pad1d,
// including its rule for inputs shorter than the pad.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/activation.h"

namespace tessera {

enum class PadMode : std::uint8_t { zero, replicate, reflect };

class CausalWindow {
 public:
  struct Options {
    int channels = 1;
    int extent = 1;  ///< rows that one output sees: (kernel - 1) * dilation + 1
    int stride = 1;
    PadMode pad = PadMode::zero;
    Activation pre = Activation::none;  ///< applied to the rows as they enter
    const float* snake = nullptr;       ///< [channels]: Snake with these alphas instead of `pre`
  };
  /// A run of rows: output t sees the extent rows from row t * stride on.
  struct Run {
    const float* rows = nullptr;
    int outputs = 0;
  };

  /// Throws UsageError unless 1 <= stride <= extent (and, for reflect, the left pad is at least stride - 1).
  explicit CausalWindow(const Options& options);

  const Options& options() const { return options_; }
  /// True when a run is just the new rows: nothing is kept, padded or changed on entry.
  bool transparent() const { return extent_one_ && options_.pre == Activation::none && !options_.snake; }
  std::size_t state_bytes() const;
  void init_state(std::byte* state) const;
  int max_outputs(int rows) const;
  int holdback() const { return options_.pad == PadMode::reflect ? left_ : 0; }
  /// Rows of memory that advance() needs for `rows` new rows.
  int run_rows(int rows) const { return rows + 2 * options_.extent + options_.stride; }

  /// Takes `length` new rows (and pads the end of the stream if `end`); lays the run out in `memory`.
  Run advance(const float* rows, int length, bool end, std::byte* state, float* memory) const;

 private:
  struct Header;
  void enter(const float* rows, int length, float* memory) const;
  int pad_start(float* memory, int available, bool end) const;
  int pad_end(float* memory, int count, std::int64_t total) const;

  Options options_;
  int left_;
  bool extent_one_;
};

}  // namespace tessera
