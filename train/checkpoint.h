// Checkpoints of a training run: everything under one step number in one safetensors file, with a hash over
// all of it. Written by a thread of its own from a copy, whole or not at all; a damaged file is noticed and
// the one before is taken. Leaves out files sharded over ranks.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "core/result.h"
#include "train/parameters.h"

namespace tessera::train {

struct Checkpoint {
  std::int64_t step = 0;      ///< steps that are done
  std::string metadata = {};  ///< UTF-8 text (JSON): the config, and what is no tensor
  NamedTensors tensors = {};  ///< distinct names
};

/// The file of a step: "<folder>/step-00001200.safetensors".
std::string checkpoint_path(const std::string& folder, std::int64_t step);
/// Steps that have a file in `folder`, in increasing order; none when there is no such folder.
std::vector<std::int64_t> list_checkpoints(const std::string& folder);

/// Writes a checkpoint at once. Error io. Throws UsageError for a name twice or text that is not UTF-8.
Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Reads one; the tensors own their memory. Errors: io; format (no checkpoint); damaged (its hash does not
/// fit, or it is cut off).
Result<Checkpoint> read_checkpoint(const std::string& path);

struct LatestCheckpoint {
  Checkpoint checkpoint;
  std::string path;
  std::vector<std::string> messages;  ///< newer files that were passed over, each with the reason
};

/// The newest good one of `folder`. Error: there is none; the reason names every file that was tried.
Result<LatestCheckpoint> load_latest(const std::string& folder);

struct CheckpointOptions {
  std::string folder = {};
  int keep = 3;                 ///< the newest so many stay; at least 1
  std::int64_t keep_every = 0;  ///< and those whose step is a multiple of this; 0: no others
};

/// Writes the checkpoints of one run, one at a time, in the background.
class CheckpointWriter {
 public:
  /// Makes the folder, which belongs to one run, and tidies it: temporary files of a run that was killed go;
  /// files of steps after `resumed_step` (damaged, or of a history that is being replaced) get the ending
  /// `.superseded`. Says what it did in `messages`. Error io.
  static Result<CheckpointWriter> open(const CheckpointOptions& options, std::int64_t resumed_step,
                                       std::vector<std::string>& messages);

  CheckpointWriter(CheckpointWriter&&) = default;
  CheckpointWriter& operator=(CheckpointWriter&&) = default;
  /// Waits for the write under way; its error is lost: call wait() before.
  ~CheckpointWriter() = default;

  /// Copies the checkpoint and writes it while the caller goes on; waits first for the one before. Older
  /// files beyond `keep` go when the new one is whole. Error (io): the write *before* failed; this one is
  /// under way all the same.
  Result<void> save(const Checkpoint& checkpoint);
  /// Waits for the write under way, if any. Error (io): it failed; the files before it are untouched.
  Result<void> wait();

 private:
  explicit CheckpointWriter(CheckpointOptions options) : options_(std::move(options)) {}

  CheckpointOptions options_;
  std::future<Result<void>> pending_;
};

}  // namespace tessera::train
