// What encoder and decoder batches have in common: numbered streams with a state each, the workspace, the
// threads.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/model.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/workspace.h"

namespace tessera {

class StreamSlots {
 public:
  StreamSlots(std::shared_ptr<const Codec> codec, StreamKind kind, const Layer* network, int max_streams,
              const StreamOptions& options)
      : codec(std::move(codec)),
        kind(kind),
        pool(options.threads),
        taken_(static_cast<std::size_t>(max_streams)) {
    const char* what = kind == StreamKind::encoder ? "encoder" : "decoder";
    if (!network) fail(what, std::string("a codec loaded with its ") + what, "one loaded without");
    if (max_streams < 1) fail(what, "at least one stream", std::to_string(max_streams));
    codebooks = options.codebooks == 0 ? info().codebooks : options.codebooks;
    if (codebooks < 1 || codebooks > info().codebooks) {
      fail(what, "1 to " + std::to_string(info().codebooks) + " codebooks", std::to_string(codebooks));
    }
    if (options.max_frames_per_step < 1)
      fail(what, "at least one frame per step", std::to_string(options.max_frames_per_step));
    max_frames = std::max(1, options.max_frames_per_step / max_streams);
  }

  const CodecInfo& info() const { return codec->info(); }
  const Model& model() const { return codec->model(); }

  /// Allocates the states and the workspace.
  void allocate(std::size_t state_bytes, std::size_t workspace_bytes) {
    for (std::size_t i = 0; i < taken_.size(); ++i)
      states_.emplace_back(kind, info().weights_hash, state_bytes);
    workspace = std::make_unique<Workspace>(workspace_bytes);
  }
  int max_streams() const { return static_cast<int>(taken_.size()); }

  /// The number of a free stream, now taken.
  int take() {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) continue;
      taken_[i] = true;
      return static_cast<int>(i);
    }
    fail("batch", "at most " + std::to_string(taken_.size()) + " open streams", "one more");
  }
  void free(int stream) {
    state(stream);
    taken_[static_cast<std::size_t>(stream)] = false;
  }
  State& state(int stream) {
    if (stream < 0 || stream >= max_streams() || !taken_[static_cast<std::size_t>(stream)]) {
      fail("batch", "an open stream", std::to_string(stream));
    }
    return states_[static_cast<std::size_t>(stream)];
  }
  /// Throws UsageError unless the inputs name open streams, each once. Leaves an array of flags in the
  /// workspace.
  template <class Input>
  void expect_distinct(std::span<const Input> inputs) {
    const auto named = workspace->array<bool>(Workspace::Side::low, taken_.size());
    std::fill(named.begin(), named.end(), false);
    for (const Input& input : inputs) {
      state(input.stream);
      bool& seen = named[static_cast<std::size_t>(input.stream)];
      if (seen) fail("batch", "every stream once", "stream " + std::to_string(input.stream) + " twice");
      seen = true;
    }
  }

  std::shared_ptr<const Codec> codec;
  StreamKind kind;
  ThreadPool pool;
  std::unique_ptr<Workspace> workspace;
  int codebooks = 0;
  int max_frames = 1;  ///< of one stream in one run of the network

 private:
  std::vector<bool> taken_;
  std::vector<State> states_;
};

}  // namespace tessera
